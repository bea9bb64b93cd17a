package sparkrowtime.python;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The options of a source that a status shows. The list is closed, since others may be secret. */
final class ReadOptions {
  private static final List<String> SHOWN =
      List.of("path", "order", "hold", "maxRowsPerTrigger", "maxBytesPerTrigger", "adapter", "producer", "view");

  private ReadOptions() {}

  static Map<String, String> described(CaseInsensitiveStringMap options) {
    Map<String, String> described = new LinkedHashMap<>();
    for (String option : SHOWN) {
      if (options.containsKey(option)) {
        described.put(option, options.get(option));
      }
    }
    described.computeIfPresent("path", (key, path) -> absolute(path));
    return described;
  }

  /** A path of this machine means the same in any other process. A URL is left as it is. */
  private static String absolute(String path) {
    return path.contains(":/") ? path : Path.of(path).toAbsolutePath().normalize().toString();
  }
}

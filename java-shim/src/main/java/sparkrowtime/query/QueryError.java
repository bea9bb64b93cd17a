package sparkrowtime.query;

import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;

/** The error of a failed query in one line: the class of its first cause, and the first line of its message. */
final class QueryError {
  private static final int MOST_CHARACTERS = 300;

  /** The last line of a Python traceback. */
  private static final Pattern PYTHON = Pattern.compile("^(\\w+\\.)*\\w*(Error|Exception|Interrupt|Exit)(:.*)?$");

  private QueryError() {}

  static String line(Throwable error) {
    Throwable first = error;
    while (first.getCause() != null && first.getCause() != first) {
      first = first.getCause();
    }
    List<String> lines = Arrays.stream(String.valueOf(first.getMessage()).split("\n")).map(String::strip).toList();
    String python = lines.stream().filter(l -> PYTHON.matcher(l).matches()).reduce((a, b) -> b).orElse(null);
    String message = lines.stream().filter(l -> !l.isEmpty()).findFirst().orElse("");
    String line = python != null ? python : first.getClass().getSimpleName() + ": " + message;
    return line.length() <= MOST_CHARACTERS ? line : line.substring(0, MOST_CHARACTERS) + "...";
  }
}

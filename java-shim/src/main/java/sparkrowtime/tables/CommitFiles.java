package sparkrowtime.tables;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The files of a Delta log, of which each is a commit, wherever they are. */
public final class CommitFiles {
  private final Path log;
  private final Configuration hadoop;

  /**
   * @param log the folder of the log
   * @param hadoop how to read it
   */
  public CommitFiles(Path log, Configuration hadoop) {
    this.log = log;
    this.hadoop = hadoop;
  }

  /** The folder of the table. */
  Path table() {
    return log.getParent();
  }

  /** The commit of a version; null if its file is not there, or not any more. */
  DeltaCommit commit(long version) {
    Path file = new Path(log, name(version));
    try (var in = file.getFileSystem(hadoop).open(file);
        var lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      return DeltaCommit.of(file.toString(), lines);
    } catch (FileNotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the commit " + file + " for the bound of the table.", e);
    }
  }

  /** The files that a version has added with new rows; none if it is not there, or not any more. */
  List<JsonNode> added(long version) {
    Path file = new Path(log, name(version));
    try (var in = file.getFileSystem(hadoop).open(file);
        var lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      return DeltaCommit.added(file.toString(), lines);
    } catch (FileNotFoundException e) {
      return List.of();
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the commit " + file + " for the times of its rows.", e);
    }
  }

  /** Whether the log has the file of a later version. */
  boolean hasBehind(long version) {
    return names().anyMatch(name -> name.compareTo(name(version)) > 0);
  }

  /** The largest version whose file the log has; -1 without one. */
  long newest() {
    return names().map(name -> Long.parseLong(name.substring(0, name.indexOf('.')))).reduce(-1L, Math::max);
  }

  private Stream<String> names() {
    try {
      return Arrays.stream(log.getFileSystem(hadoop).listStatus(log))
          .map(status -> status.getPath().getName())
          .filter(name -> name.matches("\\d{20}\\.json"));
    } catch (FileNotFoundException e) {
      return Stream.empty();
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot list the log " + log + " for the bound of the table.", e);
    }
  }

  private static String name(long version) {
    return String.format(Locale.ROOT, "%020d.json", version);
  }
}

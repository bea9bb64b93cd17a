package sparkrowtime.tables;

import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The files of a Delta log, of which each is a commit, wherever they are. */
public final class DeltaLog extends CommitLog {
  private final Path log;
  private final Configuration hadoop;
  private final TableName table;

  /**
   * @param log the folder of the log
   * @param hadoop how to read it
   */
  public DeltaLog(Path log, Configuration hadoop) {
    this.log = log;
    this.hadoop = hadoop;
    this.table = TableName.ofDelta(log.getParent(), hadoop);
  }

  @Override
  public TableName table() {
    return table;
  }

  @Override
  public String whyCleaned() {
    return "the log was cleaned up (delta.logRetentionDuration) after later commits of others";
  }

  @Override
  String unit() {
    return "version";
  }

  @Override
  long before(long version) {
    return version - 1;
  }

  /** A RESTORE has the rows of the version that it names. */
  @Override
  long origin(long version, TableCommit commit) {
    return commit instanceof DeltaCommit delta && delta.isRestore() ? delta.restored(version) : version - 1;
  }

  @Override
  List<Numbered> since(long version) {
    List<Numbered> commits = new ArrayList<>();
    long at = version < 0 ? newest() : version + 1;
    for (DeltaCommit next = commit(at); next != null; next = commit(++at)) {
      commits.add(new Numbered(at, next));
    }
    return commits;
  }

  /** A log is cleaned up from its beginning. If a version has no file, and no later one has, its commits are elsewhere. */
  @Override
  void requireCleaned(long version) {
    if (!hasBehind(version)) {
      throw new IllegalStateException(
          "The commit of version " + version + " of " + table.name() + " is not in its log, and none behind it is: a catalog"
              + " manages the commits of the table (catalogManaged), or its log was removed. So its bounds are not known. Use a"
              + " table that keeps its commits in _delta_log.");
    }
  }

  /** A table that is set back says so in its log. Of one that was made again, no commit is of the query. */
  @Override
  boolean lacks(long batch, long last, boolean wentBack, boolean whole) {
    return last < batch - 1 && (wentBack || whole && last < 0);
  }

  @Override
  String wayToReplace() {
    return " If nobody needs the rows that are there, overwrite them all: INSERT OVERWRITE.";
  }

  /** The commit of a version; null if its file is not there, or not any more. */
  @Override
  DeltaCommit commit(long version) {
    return read(version, DeltaCommit::of);
  }

  @Override
  Timed timed(long version, String column) {
    DeltaCommit commit = column == null ? commit(version) : read(version, DeltaCommit::whole);
    return commit == null ? null : new Timed(commit, commit.added().stream().map(add -> DeltaTimes.of(add, column)).toList());
  }

  /** Whether the commitInfo of a commit that is there has one of these texts. The newest commits are looked at first. */
  public boolean says(String one, String other) {
    long version = newest();
    for (DeltaCommit at = commit(version); at != null; at = commit(--version)) {
      if (at.text().contains(one) || at.text().contains(other)) {
        return true;
      }
    }
    return false;
  }

  /** Where columns can be given other names, no times are derived of them. */
  @Override
  String identity(String column) {
    return column;
  }

  @Override
  String wayToStatistics(String column) {
    return "Name the column in the table's property delta.dataSkippingStatsColumns, and let its writers write statistics.";
  }

  private DeltaCommit read(long version, Lines reading) {
    Path file = new Path(log, name(version));
    try (var in = file.getFileSystem(hadoop).open(file);
        var lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      return reading.of(file.toString(), lines);
    } catch (FileNotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the commit " + file + " for the bound of the table.", e);
    }
  }

  /** What is made of the lines of a file. */
  private interface Lines {
    DeltaCommit of(String file, BufferedReader lines) throws IOException;
  }

  /** Whether the log has the file of a later version. */
  private boolean hasBehind(long version) {
    return names().anyMatch(name -> name.compareTo(name(version)) > 0);
  }

  /** The largest version whose file the log has; -1 without one. */
  private long newest() {
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

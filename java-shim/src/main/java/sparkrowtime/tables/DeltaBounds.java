package sparkrowtime.tables;

import java.io.BufferedReader;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import sparkrowtime.support.Shown;

/**
 * The bounds in the commits of a Delta table, read from the files of its log, wherever these are. A commit is read once:
 * the bound at the last versions is remembered. Used in the query's thread.
 *
 * <p>Law: the floor behind a version is that of the newest commit up to it that has one, as far as its rows are there: a
 * RESTORE leads to the version that it names. From version to version it does not fall; a table whose floor would is
 * refused. So is one whose commits are not all in its log, and a bound that says to be about another column.
 */
public final class DeltaBounds {
  private static final int MOST_KNOWN = 16;
  private static final String NEW_QUERY =
      "Start the query with a new checkpointLocation and a new output; it then begins with the table as it is now.";

  private final Path log;
  private final Configuration hadoop;
  private final String column;
  private final TreeMap<Long, Known> known = new TreeMap<>();
  private boolean cleaned;

  /** What is known of a version: the floor behind it, and its commit. */
  private record Known(Long floor, String info) {}

  /**
   * @param log the folder of the log
   * @param hadoop how to read it
   * @param column the column of the table that is asked for; null for a time that is computed
   */
  public DeltaBounds(Path log, Configuration hadoop, String column) {
    this.log = log;
    this.hadoop = hadoop;
    this.column = column;
  }

  /** The floor behind all rows of the commits up to a version, in microseconds; null if none of them promises one. */
  public Long floorBehind(long version) {
    if (version < 0) {
      return null;
    }
    Map.Entry<Long, Known> before = known.floorEntry(version);
    if (before == null) {
      known.put(version, lookedBack(version));
    } else if (before.getKey() < version) {
      goOn(before.getKey(), before.getValue(), version);
    }
    Long floor = known.get(version).floor();
    while (known.size() > MOST_KNOWN) {
      known.pollFirstEntry();
    }
    return floor;
  }

  /** Whether a commit that could have had a bound was no longer in the log. */
  public boolean isCleaned() {
    return cleaned;
  }

  private Known lookedBack(long version) {
    String info = "";
    long at = version;
    while (at >= 0) {
      DeltaCommit commit = commit(at);
      if (commit == null) {
        requireCleaned(at);
        cleaned = true;
        return new Known(null, info);
      }
      info = at == version ? commit.info() : info;
      requireColumn(at, commit);
      if (commit.floor() != null || commit.replaces()) {
        return new Known(commit.floor(), info);
      }
      at = commit.operation().equals(DeltaCommit.RESTORE) ? restored(at, commit) : at - 1;
    }
    return new Known(null, info);
  }

  private void goOn(long from, Known start, long to) {
    requireSame(from, start);
    Known last = start;
    for (long at = from + 1; at <= to; at++) {
      DeltaCommit commit = commit(at);
      if (commit == null) {
        requireCleaned(at);
      } else {
        requireColumn(at, commit);
      }
      last = commit == null ? new Known(last.floor(), "") : behind(at, commit, last);
    }
    known.put(to, last);
  }

  private Known behind(long at, DeltaCommit commit, Known before) {
    if (before.floor() != null && (commit.operation().equals(DeltaCommit.RESTORE) || commit.replaces())) {
      throw new IllegalStateException(
          "DataLostError: version " + at + " of " + log.getParent() + " (" + commit.operation() + ") has set the table back,"
              + " or replaced its rows. The query has read the rows that were there, and its results up to "
              + Shown.time(before.floor()) + " are final. " + NEW_QUERY);
    } else if (commit.floor() != null && before.floor() != null && commit.floor() < before.floor()) {
      throw new IllegalStateException(
          "DataLostError: the bound of " + log.getParent() + " has gone back from " + Shown.time(before.floor()) + " to "
              + Shown.time(commit.floor()) + " in version " + at + ": another drain or query writes to it. The results of this"
              + " query up to the former bound are final. " + NEW_QUERY);
    }
    return new Known(commit.floor() == null ? before.floor() : commit.floor(), commit.info());
  }

  /** The log may be that of a table that was deleted and made again. A commit that was cleaned up says nothing. */
  private void requireSame(long version, Known before) {
    DeltaCommit now = before.info().isEmpty() ? null : commit(version);
    if (now != null && !now.info().equals(before.info())) {
      throw new IllegalStateException(
          "DataLostError: " + log.getParent() + " was deleted and made again: version " + version + " of its log is another"
              + " commit than the one that this query has read. " + NEW_QUERY);
    }
  }

  private void requireColumn(long version, DeltaCommit commit) {
    if (commit.floor() != null && commit.column() != null && !commit.column().equalsIgnoreCase(column)) {
      throw new IllegalArgumentException(
          "The bound in version " + version + " of " + log.getParent() + " is about its column " + commit.column() + ", and"
              + " punctuate is over " + (column == null ? "a time that is computed" : "its column " + column) + ". Call it on "
              + commit.column() + ", and compute other times from that above it.");
    }
  }

  /** A log is cleaned up from its beginning. If a version has no file, and no later one has, its commits are elsewhere. */
  private void requireCleaned(long version) {
    if (!hasCommitBehind(version)) {
      throw new IllegalStateException(
          "The commit of version " + version + " of " + log.getParent() + " is not in its log, and none behind it is: a catalog"
              + " manages the commits of the table (catalogManaged), or its log was removed. So its bounds are not known. Use a"
              + " table that keeps its commits in _delta_log.");
    }
  }

  private boolean hasCommitBehind(long version) {
    try {
      String file = file(version).getName();
      return Arrays.stream(log.getFileSystem(hadoop).listStatus(log))
          .map(status -> status.getPath().getName())
          .anyMatch(name -> name.matches("\\d{20}\\.json") && name.compareTo(file) > 0);
    } catch (FileNotFoundException e) {
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot list the log " + log + " for the bound of the table.", e);
    }
  }

  private Path file(long version) {
    return new Path(log, String.format(Locale.ROOT, "%020d.json", version));
  }

  private long restored(long at, DeltaCommit commit) {
    if (commit.restored() != null && commit.restored() < at) {
      return commit.restored();
    }
    throw new IllegalStateException(
        "DataLostError: " + log.getParent() + " was set back by RESTORE to a time (version " + at + " of its log), and the log"
            + " does not say which version that was, so the bound of its rows is not known. Say it by number, which changes"
            + " no row if it is the same: RESTORE TABLE ... TO VERSION AS OF n.");
  }

  /** The commit of a version; null if its file is not there any more. */
  private DeltaCommit commit(long version) {
    Path file = file(version);
    try (var in = file.getFileSystem(hadoop).open(file);
        var lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      return DeltaCommit.of(file.toString(), lines);
    } catch (FileNotFoundException e) {
      return null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the commit " + file + " for the bound of the table.", e);
    }
  }
}

package sparkrowtime.tables;

import java.util.Map;
import java.util.TreeMap;
import sparkrowtime.support.Shown;

/**
 * The bounds in the commits of a Delta table. A commit is read once: the bound at the last versions is remembered. Used in
 * the query's thread.
 *
 * <p>Law: the floor behind a version is that of the newest commit up to it that has one, as far as its rows are there: a
 * RESTORE leads to the version that it names. From version to version it does not fall; a table whose floor would is
 * refused. So is one whose commits are not all in its log, a bound that says to be about another column, and bounds of two
 * writers, of which each promises for itself alone.
 */
public final class DeltaBounds {
  private static final int MOST_KNOWN = 16;
  private static final String NEW_QUERY =
      "Start the query with a new checkpointLocation and a new output; it then begins with the table as it is now.";

  private final CommitFiles files;
  private final String column;
  private final TreeMap<Long, Known> known = new TreeMap<>();
  private boolean cleaned;

  /** What is known of a version: the floor behind it and who has promised it, and the text of its commit. */
  private record Known(Long floor, String writer, String text) {}

  /**
   * @param column the column of the table that is asked for; null for a time that is computed
   */
  public DeltaBounds(CommitFiles files, String column) {
    this.files = files;
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
    String text = "";
    String asked = column;
    long at = version;
    while (at >= 0) {
      DeltaCommit commit = files.commit(at);
      if (commit == null) {
        requireCleaned(at);
        cleaned = true;
        return new Known(null, null, text);
      }
      text = at == version ? commit.text() : text;
      requireColumn(at, commit, asked);
      if (commit.floor() != null || commit.replaces()) {
        return new Known(commit.floor(), commit.writer(), text);
      }
      String before = asked == null ? null : commit.before(asked);
      if (before == null && asked != null) {
        return new Known(null, null, text);
      }
      asked = before;
      at = commit.isRestore() ? commit.restored(at) : at - 1;
    }
    return new Known(null, null, text);
  }

  private void goOn(long from, Known start, long to) {
    requireSame(from, start);
    Known last = start;
    for (long at = from + 1; at <= to; at++) {
      DeltaCommit commit = files.commit(at);
      if (commit == null) {
        requireCleaned(at);
      } else {
        requireColumn(at, commit, column);
      }
      last = commit == null ? new Known(last.floor(), last.writer(), "") : behind(at, commit, last);
    }
    known.put(to, last);
  }

  private Known behind(long at, DeltaCommit commit, Known before) {
    if (before.floor() != null) {
      requireGoesOn(at, commit, before);
    }
    return commit.floor() == null
        ? new Known(before.floor(), before.writer(), commit.text())
        : new Known(commit.floor(), commit.writer(), commit.text());
  }

  private void requireGoesOn(long at, DeltaCommit commit, Known before) {
    String table = "version " + at + " of " + files.table();
    String last = Shown.time(before.floor());
    if (commit.isRestore() || commit.replaces()) {
      throw new IllegalStateException(
          "DataLostError: " + table + " (" + commit.operation() + ") has set the table back, or replaced its rows. The query"
              + " has read the rows that were there, and its results up to " + last + " are final. " + NEW_QUERY);
    } else if (column != null && !column.equals(commit.before(column))) {
      throw new IllegalStateException(
          "DataLostError: " + table + " (" + commit.operation() + ") has given the name " + column + " to another column, or to"
              + " none. The bounds before it are about the former one. " + NEW_QUERY);
    } else if (commit.floor() != null && commit.floor() < before.floor()) {
      throw new IllegalStateException(
          "DataLostError: the bound of " + files.table() + " has gone back from " + last + " to " + Shown.time(commit.floor())
              + " in version " + at + ": another drain or query writes to it. The results of this query up to the former bound"
              + " are final. " + NEW_QUERY);
    } else if (commit.floor() != null && isAnother(before.writer(), commit.writer())) {
      throw new IllegalStateException(
          "DataLostError: " + table + " has a bound by " + named(commit.writer()) + ", and the one before is by "
              + named(before.writer()) + ". Each promises for itself alone, so up to where the table is complete is not known."
              + " Let one of them write to another table. " + NEW_QUERY);
    }
  }

  private static boolean isAnother(String one, String other) {
    return one != null && other != null && !one.equals(other);
  }

  /** A query by its id, or a drain. */
  static String named(String writer) {
    return writer.equals(DeltaCommit.DRAIN) ? writer : "query " + writer;
  }

  /** The log may be that of a table that was deleted and made again. A commit that was cleaned up says nothing. */
  private void requireSame(long version, Known before) {
    DeltaCommit now = before.text().isEmpty() ? null : files.commit(version);
    if (now != null && !now.text().equals(before.text())) {
      throw new IllegalStateException(
          "DataLostError: " + files.table() + " was deleted and made again: version " + version + " of its log is another"
              + " commit than the one that this query has read. " + NEW_QUERY);
    }
  }

  private void requireColumn(long version, DeltaCommit commit, String asked) {
    if (commit.floor() != null && commit.column() != null && !commit.column().equalsIgnoreCase(asked)) {
      throw new IllegalArgumentException(
          "The bound in version " + version + " of " + files.table() + " is about its column " + commit.column() + ", and"
              + " punctuate is over " + (asked == null ? "a time that is computed" : "its column " + asked) + ". Call it on "
              + commit.column() + ", and compute other times from that above it.");
    }
  }

  /** A log is cleaned up from its beginning. If a version has no file, and no later one has, its commits are elsewhere. */
  private void requireCleaned(long version) {
    if (!files.hasBehind(version)) {
      throw new IllegalStateException(
          "The commit of version " + version + " of " + files.table() + " is not in its log, and none behind it is: a catalog"
              + " manages the commits of the table (catalogManaged), or its log was removed. So its bounds are not known. Use a"
              + " table that keeps its commits in _delta_log.");
    }
  }
}

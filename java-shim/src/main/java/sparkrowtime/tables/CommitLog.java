package sparkrowtime.tables;

import java.util.List;
import sparkrowtime.support.Shown;

/** The commits of a table, each under a number of its own: a version of a Delta table, a snapshot of an Iceberg table. */
public abstract class CommitLog {
  /** The number of no commit. */
  static final long NONE = -1;

  static final String NEW_QUERY =
      "Start the query with a new checkpointLocation and a new output; it then begins with the table as it is now.";

  /** A commit under its number. */
  record Numbered(long number, TableCommit commit) {}

  /**
   * What the statistics of a file with new rows tell of a column.
   *
   * @param largest the largest time in microseconds; null where there is none, or it is not known
   * @param isKnown whether it is known
   */
  record FileTime(Long largest, boolean isKnown) {}

  /** A commit, and the times of its files with new rows. */
  record Timed(TableCommit commit, List<FileTime> times) {}

  /** The table, for messages. */
  public abstract TableName table();

  /** Why a commit is no longer there, and what keeps the next ones, for messages. */
  public abstract String whyCleaned();

  /** What a number is, for messages: version or snapshot. */
  abstract String unit();

  /** The commit of a number; null if it is not there, or not any more. */
  abstract TableCommit commit(long number);

  /** The number before in the log, whether its commit is still there or not; {@link #NONE} for the first one. */
  abstract long before(long number);

  /** The number of the commit whose rows a commit has, and its own. */
  abstract long origin(long number, TableCommit commit);

  /** The commits after a number as the table is now, oldest first; of none, the newest commit alone. */
  abstract List<Numbered> since(long number);

  /**
   * The commit of a number with the times of a column in its files with new rows, which is read once for both.
   *
   * @param column null if the times are not asked for; then there are none
   * @return null if it is not there, or not any more
   */
  abstract Timed timed(long number, String column);

  /** What a column is told by, also once it has another name. */
  abstract String identity(String column);

  /** How files get the statistics for that, for messages. */
  abstract String wayToStatistics(String column);

  /** Refuses a table of which a commit is not there, and was not cleaned up. */
  abstract void requireCleaned(long number);

  /**
   * Whether a query's batch is missing in a table where it would have to be.
   *
   * @param last the last batch of the query that is there; -1 for none
   * @param wentBack whether the table was set back, as far as its log tells it, or its rows were replaced
   * @param whole whether all commits back to that batch, or to the first commit, are there
   */
  abstract boolean lacks(long batch, long last, boolean wentBack, boolean whole);

  /** How another query can take the place of the one that writes, for messages; empty where there is no such way. */
  abstract String wayToReplace();

  /**
   * Refuses a commit that has taken back rows which a query has read.
   *
   * @param floor up to where the results of the query are final
   */
  final void requireGoesOn(long number, TableCommit commit, long floor) {
    if (commit.takesBack()) {
      throw new IllegalStateException(
          "DataLostError: " + named(number) + " (" + commit.operation() + ") has set the table back, or replaced its rows. The"
              + " query has read the rows that were there, and its results up to " + Shown.time(floor) + " are final. "
              + NEW_QUERY);
    }
  }

  /**
   * Refuses a table that was deleted and made again, as the commit of a number tells. One that was cleaned up says nothing.
   *
   * @param text that of the commit when it was looked at; empty where it was not there
   */
  final void requireSame(long number, String text) {
    TableCommit now = text.isEmpty() ? null : commit(number);
    if (now == null && !text.isEmpty()) {
      requireCleaned(number);
    } else if (now != null && !now.text().equals(text)) {
      throw new IllegalStateException(
          "DataLostError: " + table().name() + " was deleted and made again: " + unit() + " " + number + " of its log is another"
              + " commit than the one that this query knows. " + NEW_QUERY);
    }
  }

  final String named(long number) {
    return unit() + " " + number + " of " + table().name();
  }
}

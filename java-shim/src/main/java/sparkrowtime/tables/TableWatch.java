package sparkrowtime.tables;

import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Derives the bounds of a table in whose commits nobody writes any, from what the user declares: the largest time that its rows
 * have had so far, less the lateness, or the latest time of its commits so far, less the delay, whichever is later.
 *
 * <p>Law: the floor is a part of the offset, which Spark logs ({@link TableOffset}). So a batch that runs again has the floor
 * that it had, whatever has become of the table's log, and the floor never falls. A file without statistics of the column counts
 * for nothing, and so does a commit without a time. A table that was set back, or whose rows were replaced, is refused once there
 * is a floor, as it is where bounds are in the commits; without one, the commits before that count for nothing.
 */
public final class TableWatch {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** At how many commits the first batch of a query looks, the newest ones. */
  private static final int FIRST = 100;

  private final CommitLog log;
  private final String column;
  private final Declared declared;
  private boolean warnedOfFiles;
  private boolean warnedOfCommits;
  private CommitLog.Numbered passed = new CommitLog.Numbered(CommitLog.NONE, null);

  private TableWatch(CommitLog log, String column, Declared declared) {
    this.log = log;
    this.column = column;
    this.declared = declared;
  }

  /** What derives the bounds, where the user asks for it; null where they are in the commits. */
  public static TableWatch of(CommitLog log, InTable mark) {
    Declared declared = mark.declared();
    if (declared == null) {
      return null;
    } else if (declared.isOfRows() && mark.column() == null) {
      throw refused("punctuate is over a time that is computed, of which the table has no statistics. Call it on the column");
    }
    return new TableWatch(log, mark.column(), declared);
  }

  /** The column, as a table's format tells columns apart; null where the floor is not derived of it. */
  public String column() {
    return declared.isOfRows() ? log.identity(column) : null;
  }

  public static IllegalArgumentException refused(String why) {
    return new IllegalArgumentException(
        "punctuate(..., watch={\"lateness\": ...}): " + why + ". Or take the times of the commits alone (watch={\"bounds\":"
            + " \"append-time\", \"delay\": \"5 minutes\"}), or let a drain or a query write bounds into the commits.");
  }

  /**
   * The floor at the end of a batch.
   *
   * @param floor that at its start; null for none
   * @param from the last commit that is passed at its start; negative for none
   * @param to the last one that is passed at its end
   */
  public Long floor(Long floor, long from, long to) {
    Long found = floor;
    if (passed.number() == from && passed.commit() != null) {
      log.requireSame(from, passed.commit().text());
    }
    long left = from < 0 ? FIRST : Long.MAX_VALUE;
    for (long at = to; at >= 0 && at != from && left > 0; at = log.before(at)) {
      CommitLog.Timed timed = log.timed(at, declared.isOfRows() ? column : null);
      found = timed == null ? found : Declared.later(found, behind(at, timed, floor));
      passed = timed != null && at == to ? new CommitLog.Numbered(to, timed.commit()) : passed;
      left = timed != null && timed.commit().takesBack() ? 0 : left - 1;
    }
    return found;
  }

  /** The floor that a commit gives; null for none. Refuses one that takes rows back, if there is a floor before it. */
  private Long behind(long number, CommitLog.Timed timed, Long before) {
    if (before != null) {
      log.requireGoesOn(number, timed.commit(), before);
    }
    return declared.floor(largest(number, timed.times()), committed(number, timed.commit()));
  }

  /** The largest time of the rows that a commit has brought, in microseconds; null where that is not known, or not needed. */
  private Long largest(long number, List<CommitLog.FileTime> times) {
    if (!warnedOfFiles && times.stream().anyMatch(time -> !time.isKnown())) {
      warnedOfFiles = true;
      LOG.warn(
          "Files of {} have no statistics of its column {}, so their rows do not move the bound. {} This is said once in a run.",
          log.named(number), column, log.wayToStatistics(column));
    }
    return times.stream().map(CommitLog.FileTime::largest).reduce(null, Declared::later);
  }

  /** When a commit was made, in microseconds; null where that is not known, or not needed. */
  private Long committed(long number, TableCommit commit) {
    Long time = declared.isOfCommits() ? commit.time() : null;
    if (declared.isOfCommits() && time == null && !warnedOfCommits) {
      warnedOfCommits = true;
      LOG.warn(
          "The commit of {} does not say when it was made, so it does not move the bound by the delay. Let its writer write a"
              + " commitInfo with the timestamp. This is said once in a run.",
          log.named(number));
    }
    return time;
  }
}

package sparkrowtime.tables;

import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Derives the bounds of a table in whose commits nobody writes any: the largest time that its rows have had so far, less the
 * lateness that the user declares.
 *
 * <p>Law: the floor is a part of the offset, which Spark logs ({@link TableOffset}). So a batch that runs again has the floor
 * that it had, whatever has become of the table's log, and the floor never falls. A file without statistics of the column counts
 * for nothing.
 */
public final class TableWatch {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** Of how many commits the first batch of a query looks at the statistics, the newest ones. */
  private static final int FIRST = 100;

  private final CommitLog log;
  private final String column;
  private final long lateness;
  private boolean warned;

  private TableWatch(CommitLog log, String column, long lateness) {
    this.log = log;
    this.column = column;
    this.lateness = lateness;
  }

  /** What derives the bounds, where the user asks for it; null where they are in the commits. */
  public static TableWatch of(CommitLog log, InTable mark) {
    if (mark.lateness() == null) {
      return null;
    } else if (mark.column() == null) {
      throw refused("punctuate is over a time that is computed, of which the table has no statistics. Call it on the column");
    }
    return new TableWatch(log, mark.column(), mark.lateness());
  }

  public static IllegalArgumentException refused(String why) {
    return new IllegalArgumentException(
        "punctuate(..., watch={\"lateness\": ...}): " + why + ". Or let a drain or a query write bounds into the commits.");
  }

  /**
   * The floor at the end of a batch.
   *
   * @param floor that at its start; null for none
   * @param from the last commit that is passed at its start; negative for none
   * @param to the last one that is passed at its end
   */
  public Long floor(Long floor, long from, long to) {
    Long largest = null;
    long left = from < 0 ? FIRST : Long.MAX_VALUE;
    for (long at = to; at >= 0 && at != from && left > 0; at = log.before(at)) {
      largest = later(largest, largest(at));
      left--;
    }
    return later(floor, largest == null || largest <= lateness ? null : Long.valueOf(largest - lateness));
  }

  /** The largest time of the rows that a commit has brought, in microseconds; null where that is not known. */
  private Long largest(long number) {
    List<CommitLog.FileTime> times = log.times(number, column);
    if (!warned && times.stream().anyMatch(time -> !time.isKnown())) {
      warned = true;
      LOG.warn(
          "Files of {} have no statistics of its column {}, so their rows do not move the bound. {} This is said once in a run.",
          log.named(number), column, log.wayToStatistics(column));
    }
    return times.stream().map(CommitLog.FileTime::largest).reduce(null, TableWatch::later);
  }

  /** The later of two times, of which each may be null. */
  private static Long later(Long one, Long other) {
    return one == null || other != null && other > one ? other : one;
  }
}

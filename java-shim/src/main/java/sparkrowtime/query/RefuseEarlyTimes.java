package sparkrowtime.query;

import java.util.Map;
import java.util.function.ToLongFunction;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.RowsSeen;
import sparkrowtime.support.Shown;

/**
 * Refuses times up to 1970. Spark's watermark starts at 1970, and rows that are not after it are late.
 * The rowtimes of a stream are later, but a query can compute earlier times from them: {@code rowtime -
 * INTERVAL 20000 DAYS}. Called in the query's thread for each batch, before it is planned.
 *
 * <p>Law: the result is a function of the log and the batch's offsets. Usually the bound at the start of a
 * batch shows that no row of it is so early; if not, the least rowtime that has been sent decides.
 */
final class RefuseEarlyTimes {
  private static final ToLongFunction<SparkDataStream> LEAST_ROWTIME = stream -> 1L;

  private RefuseEarlyTimes() {}

  /**
   * @param before the floors at the start of the batch
   * @param sent the rows that have been sent up to the end of the batch
   */
  static void check(WatermarkNodes nodes, ToLongFunction<SparkDataStream> before, RowsSeen sent) {
    if (canBeEarly(nodes.bounds(LEAST_ROWTIME)) && canBeEarly(nodes.bounds(before))) {
      nodes.bounds(sent::leastOf).forEach(RefuseEarlyTimes::check);
    }
  }

  private static boolean canBeEarly(Map<EventTimeWatermark, Bound> bounds) {
    return bounds.values().stream().anyMatch(b -> b != null && b.floor() <= 0);
  }

  private static void check(EventTimeWatermark node, Bound least) {
    if (least != null && least.isKnown() && least.floor() <= 0) {
      throw new IllegalArgumentException(
          "The time " + node.eventTime().name() + " (" + Origin.of(node.eventTime(), node.child()) + ") of a row that"
              + " was sent is " + Shown.time(least.floor()) + ". Spark's watermark starts"
              + " at 1970-01-01T00:00:00Z, so all rows up to then would be lost as late. Group by rowtime itself, and"
              + " shift the times of the results.");
    }
  }
}

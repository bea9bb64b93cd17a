package sparkrowtime.query;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;

/**
 * Sources that a query has got since its last run, which Spark allows where sources have names (source evolution). The
 * query's watermark never falls, so rows of such a source before it would be lost as late.
 *
 * <p>Law: a source that is added lowers no bound of the query.
 */
final class AddedSources {
  private static final String EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution";

  /** Of a source that is left out. */
  private static final long NEVER = EndOfTime.floor(Bound.UNLIMITED - 1);

  private final BoundedQuery query;
  private final StreamProgress log;

  private AddedSources(BoundedQuery query, StreamProgress log) {
    this.query = query;
    this.log = log;
  }

  /** Whether the query's sources have names, by which Spark knows them again. */
  static boolean areNamed(MicroBatchExecution query) {
    var conf = query.sparkSessionForStream().sessionState().conf();
    return Boolean.parseBoolean(conf.getConfString(EVOLUTION, "false"));
  }

  /** The stream that a leaf of a plan reads; null for other sources. */
  static RowtimeStream stream(LogicalPlan leaf) {
    return leaf instanceof StreamingDataSourceV2ScanRelation r && r.stream() instanceof RowtimeStream s ? s : null;
  }

  /**
   * Refuses a source that the last batch of the log did not have, if it lowers a bound.
   *
   * @param start where the query begins to read it; null for a table of which it has read nothing
   */
  static void check(BoundedQuery query, SparkDataStream stream, Offset start) {
    MicroBatchExecution spark = query.spark();
    StreamProgress log = spark.getLatestExecutionContext().endOffsets();
    if (areNamed(spark) && !log.contains(stream) && spark.offsetLog().getLatest().isDefined()) {
      new AddedSources(query, log).refuseEarly(stream, start);
    }
  }

  private void refuseEarly(SparkDataStream added, Offset start) {
    long first = start == null ? Bound.UNKNOWN_YET : first(added, start);
    Map<String, Long> before = bounds(this::logged);
    Map<String, Long> now = bounds(stream -> stream == added ? first : logged(stream));
    before.forEach(
        (what, bound) -> {
          if (now.getOrDefault(what, Bound.UNKNOWN_YET) < bound) {
            if (isOfTopic(added)) {
              query.topics().forgetFirst((RowtimeStream) added);
            }
            throw refused(added, what, bound);
          }
        });
  }

  private long first(SparkDataStream added, Offset start) {
    return isOfTopic(added)
        ? query.topics().firstFloor((RowtimeStream) added, start)
        : BoundedQuery.floor(start, added);
  }

  private static boolean isOfTopic(SparkDataStream added) {
    return added instanceof RowtimeStream stream && stream.unionId() != null;
  }

  private long logged(SparkDataStream stream) {
    return log.contains(stream) ? query.floor(log, stream) : NEVER;
  }

  private Map<String, Long> bounds(ToLongFunction<SparkDataStream> floors) {
    LogicalPlan plan = query.spark().logicalPlan();
    LogicalPlan written = plan.children().apply(0);
    Map<String, Long> bounds = new TreeMap<>();
    query.nodes()
        .bounds(floors)
        .forEach((node, bound) -> bounds.merge(node.eventTime().name(), floor(bound), Math::min));
    OutputPaths.floors(Scala.list(written.output()), new PlanBounds(new Definitions(plan), floors).of(written))
        .forEach((path, floor) -> bounds.merge(path, floor, Math::min));
    return bounds;
  }

  private static long floor(Bound bound) {
    return bound == null ? Bound.UNKNOWN_YET : bound.floor();
  }

  private static String named(SparkDataStream added) {
    return added instanceof RowtimeStream s ? s.questions().source() + " (" + s.path() + ")" : added.toString();
  }

  private static IllegalArgumentException refused(SparkDataStream added, String what, long bound) {
    boolean isKnown = EndOfTime.published(bound) != EndOfTime.published(NEVER);
    String time = isKnown ? Instant.EPOCH.plus(bound, ChronoUnit.MICROS).toString() : "";
    return new IllegalArgumentException(
        "The source " + named(added) + " is new in this query, whose checkpoint "
            + (isKnown
                ? "has the bound " + time + " of " + what + ", and rows of this source may be earlier: they would be lost"
                    + " as late. " + leftOut(added, time) + "; or start"
                : "has none of its other sources, so what has been promised is not known. Keep one of them, or start")
            + " with a new checkpoint and a new output.");
  }

  private static String leftOut(SparkDataStream added, String time) {
    return isOfTopic(added)
        ? "Let its topic begin behind the offsets of a bound at " + time + " or later (startingOffsets), once there is one"
        : "Leave them out with option(\"startingPosition\", \"" + time + "\"), or a later time where the query computes an"
            + " earlier one from it";
  }
}

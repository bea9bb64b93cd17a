package sparkrowtime.query;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.ToLongFunction;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.support.Scala;

/**
 * The watermark nodes of a query, each with the bound of its column.
 *
 * <p>Law: if only rowtime streams feed a node's column, the node follows their floor. If ordinary sources
 * feed it, too, the node follows the weaker of the floor and of the watermark that Spark derives from the
 * rows (the stronger, if a rowtime stream has option punctuate). Every other node follows Spark. The
 * query's watermark is the weakest of its nodes.
 */
public final class WatermarkNodes {
  private final List<EventTimeWatermark> nodes = new ArrayList<>();
  private final Definitions definitions;

  WatermarkNodes(LogicalPlan plan) {
    definitions = new Definitions(plan);
    plan.foreach(Scala.each(this::add));
  }

  private void add(LogicalPlan node) {
    if (node instanceof EventTimeWatermark watermark) {
      nodes.add(watermark);
    }
  }

  /** The bound of each node's column for these floors of the streams; null if nothing is known. */
  public Map<EventTimeWatermark, Bound> bounds(ToLongFunction<SparkDataStream> floors) {
    PlanBounds plan = new PlanBounds(definitions, floors);
    Map<EventTimeWatermark, Bound> bounds = new IdentityHashMap<>();
    nodes.forEach(n -> bounds.put(n, plan.of(n)));
    return bounds;
  }

  /** The query's watermark in ms, given those that Spark derived from the rows; 0 if there is none yet. */
  long weakest(ToLongFunction<SparkDataStream> floors, Map<UUID, Long> fromRows) {
    return bounds(floors).entrySet().stream()
        .mapToLong(e -> watermark(e.getValue(), fromRows.getOrDefault(e.getKey().nodeId(), 0L)))
        .min()
        .orElse(0L);
  }

  private static long watermark(Bound bound, long fromRows) {
    if (bound == null || bound.isOrdinary()) {
      return fromRows;
    } else if (!bound.mixed()) {
      return Math.max(0L, bound.windowMs());
    }
    return bound.punctuates()
        ? Math.max(bound.windowMs(), fromRows)
        : Math.min(bound.windowMs(), fromRows);
  }

  /** The highest watermark in ms that the query can have; {@link Long#MAX_VALUE} if rows of ordinary sources decide. */
  long highest(ToLongFunction<SparkDataStream> floors) {
    return bounds(floors).values().stream()
        .filter(b -> b != null && !b.isOrdinary() && !(b.mixed() && b.punctuates()))
        .mapToLong(b -> Math.max(0L, b.windowMs()))
        .min()
        .orElse(Long.MAX_VALUE);
  }

  /** The bounds by node id. Nodes with the same id (a self-join) have the weakest of their bounds. */
  Map<UUID, Bound> byId(ToLongFunction<SparkDataStream> floors) {
    Map<UUID, Bound> byId = new HashMap<>();
    bounds(floors)
        .forEach((node, bound) -> byId.merge(node.nodeId(), bound == null ? Bound.ORDINARY : bound, Bound::weakest));
    return byId;
  }

  /**
   * The weakest floor of the nodes, for state functions that compare rows in microseconds; {@link
   * Bound#UNKNOWN_YET} if a node does not follow bounds alone.
   */
  long weakestFloor(ToLongFunction<SparkDataStream> floors) {
    return bounds(floors).values().stream()
        .mapToLong(b -> b == null || b.mixed() ? Bound.UNKNOWN_YET : b.floor())
        .min()
        .orElse(Bound.UNKNOWN_YET);
  }

  /** The largest watermark for operators to which rows at W itself are late. */
  long rawLimit(ToLongFunction<SparkDataStream> floors) {
    return bounds(floors).values().stream()
        .filter(b -> b != null && !b.isOrdinary())
        .mapToLong(Bound::rawMs)
        .min()
        .orElse(Long.MAX_VALUE);
  }
}

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
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.source.BoundedStream;
import sparkrowtime.support.Scala;

/**
 * The watermark nodes of a query, each with the bound of its column.
 *
 * <p>Law: a node whose column only rowtime streams feed follows their floor; one that ordinary
 * sources feed too, the weaker of the floor and of what Spark derives from the rows (the stronger
 * where a rowtime stream speaks for the others); every other node, Spark. The query's watermark is
 * the weakest over its nodes.
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

  /** The bound of each node's column, by the floors of the streams; null where nothing is known. */
  public Map<EventTimeWatermark, Bound> bounds(ToLongFunction<BoundedStream> floors) {
    PlanBounds plan = new PlanBounds(definitions, floors);
    Map<EventTimeWatermark, Bound> bounds = new IdentityHashMap<>();
    nodes.forEach(n -> bounds.put(n, plan.of(n.child()).get(n.eventTime())));
    return bounds;
  }

  /** The query's watermark in ms, given those that Spark derived from the rows; 0 for none yet. */
  long weakest(ToLongFunction<BoundedStream> floors, Map<UUID, Long> fromRows) {
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
    return bound.speaks()
        ? Math.max(bound.windowMs(), fromRows)
        : Math.min(bound.windowMs(), fromRows);
  }

  /** The bounds by node id; nodes of one id (a self-join) have the weakest of theirs. */
  Map<UUID, Bound> byId(ToLongFunction<BoundedStream> floors) {
    Map<UUID, Bound> byId = new HashMap<>();
    bounds(floors)
        .forEach((node, bound) -> byId.merge(node.nodeId(), bound == null ? Bound.ORDINARY : bound, Bound::weakest));
    return byId;
  }

  /**
   * The weakest floor of the nodes, for state functions that know their rows to the microsecond;
   * {@link Bound#UNKNOWN_YET} where a node follows more than bounds.
   */
  long weakestFloor(ToLongFunction<BoundedStream> floors) {
    return bounds(floors).values().stream()
        .mapToLong(b -> b == null || b.mixed() ? Bound.UNKNOWN_YET : b.floor())
        .min()
        .orElse(Bound.UNKNOWN_YET);
  }

  /** What the watermark may be at most for operators that take rows at W itself for late. */
  long rawLimit(ToLongFunction<BoundedStream> floors) {
    return bounds(floors).values().stream()
        .filter(b -> b != null && !b.isOrdinary())
        .mapToLong(Bound::rawMs)
        .min()
        .orElse(Long.MAX_VALUE);
  }
}

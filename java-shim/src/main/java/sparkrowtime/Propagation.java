package sparkrowtime;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;

/**
 * One batch's watermark on its way up a physical plan, children first: what each stateful operator
 * is given and what its results can still be. Made by {@link BoundPropagator} for each batch.
 */
final class Propagation {
  private final long watermarkMs;
  private final long rawLimitMs;
  private final long floor;
  private final Map<UUID, Bound> nodes;
  private final Map<Long, Long> inputs = new HashMap<>();
  private final Map<Long, JoinSides> sides = new HashMap<>();
  private final Evictions evicted = new Evictions();

  /**
   * @param watermarkMs the query's watermark for this batch
   * @param rawLimitMs the most that operators on raw time may be given
   * @param nodes the bounds of the watermark nodes
   */
  Propagation(long watermarkMs, long rawLimitMs, long floor, Map<UUID, Bound> nodes) {
    this.watermarkMs = watermarkMs;
    this.rawLimitMs = rawLimitMs;
    this.floor = floor;
    this.nodes = nodes;
  }

  /** By stateful operator, the watermark that it evicts by. */
  Map<Long, Long> inputs() {
    return inputs;
  }

  /** By operator, how the stream-stream joins evict. */
  Map<Long, JoinSides> sides() {
    return sides;
  }

  Evictions evicted() {
    return evicted;
  }

  /** The watermark of a node's output, or null where there is none below it. */
  Long visit(SparkPlan node) {
    Long input =
        Scala.list(node.children()).stream()
            .map(this::visit)
            .filter(Objects::nonNull)
            .min(Long::compare)
            .orElse(null);
    if (node instanceof EventTimeWatermarkExec) {
      refuseSecond(input);
      return watermarkMs;
    }
    return node instanceof StateStoreWriter operator ? visit(operator, input) : input;
  }

  private static void refuseSecond(Long input) {
    if (input != null) {
      throw new IllegalArgumentException(
          "A withWatermark above another one: in one query a time has one watermark. Remove the"
              + " later withWatermark; a window's time keeps the watermark of its rows.");
    }
  }

  private Long visit(StateStoreWriter operator, Long input) {
    long id = operator.stateInfo().get().operatorId();
    if (input == null) {
      inputs.put(id, 0L);
      return null;
    }
    refuseAboveEndless(operator);
    long fitting = Math.max(0, Operators.evictsWindows(operator) ? input : Math.min(input, rawLimitMs));
    inputs.put(id, fitting);
    if (operator instanceof StreamingSymmetricHashJoinExec join) {
      return joined(join, id, input, fitting);
    } else if (Operators.isAggregation(operator)) {
      evicted.aggregated(operator, fitting);
    }
    if (Operators.follows((SparkPlan) operator)) {
      boolean exact = floor != Bound.UNKNOWN_YET && Math.floorDiv(floor - 1, 1000L) == fitting;
      evicted.followed(exact ? floor : fitting * 1000 + 1);
      return exact ? input : (Long) fitting;
    }
    long below = Operators.isSession(operator) ? 1 : 0;
    long given = Operators.holdsRows(operator) ? Math.max(0, fitting - below) : input;
    return (Long) Scala.orNull(operator.produceOutputWatermark(given));
  }

  private void refuseAboveEndless(StateStoreWriter operator) {
    if (!Operators.times((SparkPlan) operator).isEmpty() && isAboveEndless((SparkPlan) operator)) {
      throw new IllegalArgumentException(
          "A join of two streams without a condition on both their times keeps rows forever, so that"
              + " its results can be of any time, and " + operator.shortName() + " above it would lose"
              + " some. Add a condition such as b.rowtime BETWEEN a.rowtime AND a.rowtime + INTERVAL"
              + " 10 MINUTES, or join on equal windows.");
    }
  }

  private boolean isAboveEndless(SparkPlan operator) {
    return Scala.list(operator.children()).stream()
        .anyMatch(child -> child.exists(this::isEndless));
  }

  private boolean isEndless(Object node) {
    JoinSides both =
        node instanceof StreamingSymmetricHashJoinExec join
            ? sides.get(join.stateInfo().get().operatorId())
            : null;
    return both != null && !both.evictsBoth();
  }

  private Long joined(StreamingSymmetricHashJoinExec join, long id, long input, long fitting) {
    JoinSides both = JoinSides.of(join, fitting, nodes);
    sides.put(id, both);
    evicted.joined(join, both);
    return both.output(input);
  }
}

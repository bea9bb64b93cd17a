package sparkrowtime.query;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingGlobalLimitExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.UpdateEventTimeColumnExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Evictions;
import sparkrowtime.bounds.WholeWindows;
import sparkrowtime.plan.Operators;
import sparkrowtime.support.Scala;

/**
 * Passes one batch's watermark up a physical plan, children first. It computes the watermark that each
 * stateful operator is given, and how early the operator's later results can be. Made by {@link
 * BoundPropagator} for each batch.
 */
final class Propagation {
  private final long watermarkMs;
  private final long rawLimitMs;
  private final long floor;
  private final Map<UUID, Bound> nodes;
  private final WholeWindows whole;
  private final Map<Long, Long> inputs = new HashMap<>();
  private final Map<Long, JoinSides> sides = new HashMap<>();
  private final Evictions evicted = new Evictions();
  private final Map<UUID, Long> behind = new HashMap<>();

  /**
   * @param watermarkMs the query's watermark for this batch
   * @param rawLimitMs the largest watermark that operators on raw times may be given
   * @param floor the weakest floor of the watermark nodes
   * @param nodes the bounds of the watermark nodes
   * @param whole the windows that end at whole milliseconds
   */
  Propagation(long watermarkMs, long rawLimitMs, long floor, Map<UUID, Bound> nodes, WholeWindows whole) {
    this.watermarkMs = watermarkMs;
    this.rawLimitMs = rawLimitMs;
    this.floor = floor;
    this.nodes = nodes;
    this.whole = whole;
  }

  /**
   * The watermark of an operator's input: {@code windows} for an operator that compares the ends of windows,
   * {@code raw} for one that compares times, to which W itself is late.
   *
   * <p>Law: later times are at or above {@code windows}, and above {@code raw}. Both are in ms. If {@code
   * exact}, later times are at or above the floor, which can be within the millisecond after {@code raw}.
   */
  private record Passed(long windows, long raw, boolean exact) {
    Passed weakest(Passed other) {
      return new Passed(Math.min(windows, other.windows), Math.min(raw, other.raw), exact && other.exact);
    }
  }

  /** The watermark by which each stateful operator evicts. */
  Map<Long, Long> inputs() {
    return inputs;
  }

  /** The evictions of the stream-stream joins, by operator. */
  Map<Long, JoinSides> sides() {
    return sides;
  }

  Evictions evicted() {
    return evicted;
  }

  /**
   * By how much, in microseconds, the results of the joins above a watermark node can lie behind what the node has
   * reached; 0 if a join has no limit. For statuses.
   */
  long behind(UUID node) {
    return behind.getOrDefault(node, 0L);
  }

  /**
   * The time, in microseconds, up to which an operator on raw times has output all results of its rows; null for
   * other operators, and if it is not known. For statuses.
   */
  Long done(StateStoreWriter operator) {
    long id = operator.stateInfo().get().operatorId();
    long watermark = inputs.getOrDefault(id, 0L);
    if (operator instanceof StreamingSymmetricHashJoinExec) {
      JoinSides both = sides.get(id);
      return both == null || !both.evictsBoth() ? null : (Long) (both.output(watermark) * 1000);
    } else if (Operators.follows((SparkPlan) operator)) {
      return evicted.followed() == null ? null : (Long) (evicted.followed() - 1);
    }
    boolean raw = Operators.isAggregation(operator) && !Operators.evictsWindows(operator);
    return raw && watermark > 0 ? (Long) (watermark * 1000) : null;
  }

  void run(SparkPlan plan) {
    visit(plan);
  }

  /** The watermark of a node's output; null if there is none below it. */
  private Passed visit(SparkPlan node) {
    Passed input =
        Scala.list(node.children()).stream()
            .map(this::visit)
            .filter(Objects::nonNull)
            .reduce(Passed::weakest)
            .orElse(null);
    if (node instanceof EventTimeWatermarkExec) {
      refuseSecond(input);
      return new Passed(watermarkMs, Math.min(watermarkMs, rawLimitMs), true);
    } else if (node instanceof UpdateEventTimeColumnExec declared && input != null) {
      evicted.emitted(declared.eventTime(), input.raw());
    }
    return node instanceof StateStoreWriter operator ? visit(operator, input) : input;
  }

  private static void refuseSecond(Passed input) {
    if (input != null) {
      throw new IllegalArgumentException(
          "A withWatermark above another one: in one query a time has one watermark. Remove the"
              + " later withWatermark; a window's time keeps the watermark of its rows.");
    }
  }

  private Passed visit(StateStoreWriter operator, Passed input) {
    long id = operator.stateInfo().get().operatorId();
    if (input == null) {
      inputs.put(id, 0L);
      return null;
    }
    refuseAboveEndless(operator);
    long fitting = Math.max(0, Operators.follows((SparkPlan) operator) ? followed(input) : compared(operator, input));
    inputs.put(id, fitting);
    if (operator instanceof StreamingSymmetricHashJoinExec join) {
      return joined(join, id, input, fitting);
    } else if (Operators.isAggregation(operator)) {
      evicted.aggregated(operator, fitting);
      long raw = rawAbove(operator, fitting);
      boolean exact = input.exact() && Operators.evictsWindows(operator) && raw == fitting;
      return produced(operator, new Passed(fitting, raw, exact));
    } else if (Operators.follows((SparkPlan) operator)) {
      boolean exact = floor != Bound.UNKNOWN_YET && Math.floorDiv(floor - 1, 1000L) == fitting;
      evicted.followed(exact ? floor : fitting * 1000 + 1);
      return new Passed(exact ? input.windows() : fitting, fitting, exact);
    }
    return produced(operator, Operators.holdsRows(operator) ? new Passed(fitting, fitting, false) : input);
  }

  private static long compared(StateStoreWriter operator, Passed input) {
    return Operators.evictsWindows(operator) ? input.windows() : input.raw();
  }

  /**
   * The watermark of a state function of this library. If it is that of the floor, the function takes all rows
   * below the floor for complete, so it is less where an operator below still keeps rows within the millisecond.
   */
  private long followed(Passed input) {
    boolean less = !input.exact() && floor != Bound.UNKNOWN_YET;
    return less ? Math.min(input.raw(), Math.floorDiv(floor - 1, 1000L) - 1) : input.raw();
  }

  private static Passed produced(StateStoreWriter operator, Passed given) {
    Object windows = Scala.orNull(operator.produceOutputWatermark(given.windows()));
    Object raw = Scala.orNull(operator.produceOutputWatermark(given.raw()));
    return windows == null || raw == null ? null : new Passed((Long) windows, (Long) raw, given.exact());
  }

  /**
   * A time, in ms, below every later time of an operator that has evicted up to {@code ms}. A window that
   * ends a microsecond after {@code ms} is still open, and its window_time is {@code ms} itself.
   */
  private long rawAbove(StateStoreWriter operator, long ms) {
    boolean clear =
        Operators.times((SparkPlan) operator).stream()
            .allMatch(a -> !(a.dataType() instanceof StructType) || whole.has(a));
    return clear ? ms : Math.max(0, ms - 1);
  }

  private void refuseAboveEndless(StateStoreWriter operator) {
    boolean drops = !(operator instanceof StreamingGlobalLimitExec); // a limit has no time, and takes no row for late
    if (drops && !Operators.times((SparkPlan) operator).isEmpty() && isAboveEndless((SparkPlan) operator)) {
      throw new IllegalArgumentException(
          "A join of two streams without a condition on both their times keeps rows forever, so"
              + " its results can have any time, and " + operator.shortName() + " above it would lose"
              + " some of them. Add a condition such as b.rowtime BETWEEN a.rowtime AND a.rowtime + INTERVAL"
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

  private Passed joined(StreamingSymmetricHashJoinExec join, long id, Passed input, long fitting) {
    JoinSides both = JoinSides.of(join, fitting, nodes);
    sides.put(id, both);
    evicted.joined(join, both.predicates());
    addBehind(join.left(), both.right());
    addBehind(join.right(), both.left());
    return new Passed(both.output(input.windows()), rawAbove(join, both.output(input.raw())), false);
  }

  /** The rows that the other side keeps wait for this one. */
  private void addBehind(SparkPlan side, SideEviction others) {
    if (others != null) {
      Scala.list(side.collect(Scala.only(EventTimeWatermarkExec.class))).stream()
          .map(EventTimeWatermarkExec.class::cast)
          .forEach(node -> behind.merge(node.nodeId(), others.behindMs() * 1000, Long::sum));
    }
  }
}

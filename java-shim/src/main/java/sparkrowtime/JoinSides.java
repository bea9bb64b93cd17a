package sparkrowtime;

import static org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateKeyWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateValueWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import scala.Option;

/**
 * The eviction of a stream-stream join with a bound per side: a left row is kept for as long as the
 * right stream may still bring a match, whatever the left stream has promised, and the other way
 * round. Spark has one watermark for both, so the slower side would hold its own rows as well.
 * Made when a batch is planned, in the query's thread.
 *
 * <p>Law: a side's bound is a function of the batch's offsets; a side that is not fed by rowtime
 * streams alone, or that reads from another operator which keeps rows, has the operator's watermark.
 *
 * @param predicates left evicts from the left state, by the right side's bound; right the reverse
 */
record JoinSides(JoinStateWatermarkPredicates predicates) {

  /**
   * @param operatorMs the operator's one watermark
   * @param nodes the bounds of the query's watermark nodes
   */
  static JoinSides of(StreamingSymmetricHashJoinExec join, long operatorMs, Map<UUID, Bound> nodes) {
    boolean raw = isRawKey(join);
    long left = watermark(join.left(), raw, operatorMs, nodes);
    long right = watermark(join.right(), raw, operatorMs, nodes);
    return new JoinSides(
        new JoinStateWatermarkPredicates(at(join, right).left(), at(join, left).right()));
  }

  /**
   * How the join is to evict in this batch. A left semi join frees its right state by the watermark of
   * the batch before, which no row of this one lies below: since SPARK-55973 Spark looks at the right
   * rows first, does not keep those that the batch evicts, and so loses their matches with left rows
   * of the batch. What the join promises does not depend on it.
   */
  JoinStateWatermarkPredicates evicting(StreamingSymmetricHashJoinExec join) {
    if (!join.joinType().equals(LeftSemi$.MODULE$)) {
      return predicates;
    }
    Object late = Scala.orNull(join.eventTimeWatermarkForLateEvents());
    return new JoinStateWatermarkPredicates(predicates.left(), at(join, late == null ? 0 : (Long) late).right());
  }

  /** No previous watermark: state format 4 then looks at all that it has, not at a range. */
  private static JoinStateWatermarkPredicates at(StreamingSymmetricHashJoinExec join, long ms) {
    return getStateWatermarkPredicates(
        join.left().output(), join.right().output(), join.leftKeys(), join.rightKeys(),
        join.condition().full(), Option.apply(ms), Option.empty(), false);
  }

  /** A raw time as join key, which is evicted at W itself: it takes what is below the floor. */
  private static boolean isRawKey(StreamingSymmetricHashJoinExec join) {
    JoinStateWatermarkPredicates any = at(join, 0);
    return !Operators.evictsWindows(join)
        && Stream.of(any.left(), any.right())
            .anyMatch(p -> Scala.orNull(p) instanceof JoinStateKeyWatermarkPredicate);
  }

  private static long watermark(SparkPlan side, boolean raw, long operatorMs, Map<UUID, Bound> nodes) {
    List<Bound> bounds = new ArrayList<>();
    collect(side, nodes, bounds);
    if (bounds.isEmpty() || bounds.stream().anyMatch(b -> b == null || b.mixed() || !b.isKnown())) {
      return operatorMs;
    }
    Bound weakest = bounds.stream().reduce(Bound::weakest).get();
    return Math.max(0, raw ? weakest.rawMs() : weakest.windowMs());
  }

  /** The bounds of the watermark nodes of a side; null for what has none, or is kept in between. */
  private static void collect(SparkPlan node, Map<UUID, Bound> nodes, List<Bound> bounds) {
    if (node instanceof EventTimeWatermarkExec watermark) {
      bounds.add(nodes.get(watermark.nodeId()));
    } else if (node instanceof StateStoreWriter && !(node instanceof StreamingDeduplicateExec)) {
      bounds.add(null);
    } else {
      Scala.list(node.children()).forEach(child -> collect(child, nodes, bounds));
    }
  }

  /** False where a row of one side is kept forever: its results may be of any time. */
  boolean evictsBoth() {
    return predicates.left().isDefined() && predicates.right().isDefined();
  }

  /** Whose rows are, in words. */
  String keptForEver() {
    if (predicates.left().isDefined()) {
      return "the right stream's";
    }
    return predicates.right().isDefined() ? "the left stream's" : "both streams'";
  }

  /** The watermark of the join's results: none is earlier than what either state still has. */
  long output(long inputMs) {
    return Stream.of(predicates.left(), predicates.right())
        .map(Scala::orNull)
        .filter(Objects::nonNull)
        .mapToLong(JoinSides::evictedMs)
        .reduce(inputMs, Math::min);
  }

  /** The largest time, in ms, of the rows that a predicate evicts. */
  static long evictedMs(JoinStateWatermarkPredicate by) {
    if (by instanceof JoinStateValueWatermarkPredicate value) {
      return value.stateWatermark();
    } else if (by instanceof JoinStateKeyWatermarkPredicate key) {
      return key.stateWatermark();
    }
    throw new ShimMismatch("a join to evict by key or by value, not by " + by.getClass(), null);
  }
}

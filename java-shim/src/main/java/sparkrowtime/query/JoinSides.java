package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.FullOuter$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.EventTimeWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateValueWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import scala.Option;
import sparkrowtime.bounds.Bound;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The eviction of a stream-stream join with a bound per side. A left row is kept as long as the right
 * stream can still send a match, whatever the left stream has promised, and vice versa. Spark has one
 * watermark for both sides, so the slower side would also hold back its own rows. Made when a batch is
 * planned, in the query's thread.
 *
 * <p>Law: a side's bound is a function of the batch's offsets. A side has the operator's watermark if it is
 * fed by other sources than rowtime streams, or by another operator that keeps rows.
 *
 * @param left evicts from the left state, by the right side's bound; null if nothing is evicted
 * @param right the reverse
 */
public record JoinSides(SideEviction left, SideEviction right) {

  /**
   * @param operatorMs the operator's only watermark, as Spark has it
   * @param nodes the bounds of the query's watermark nodes
   */
  static JoinSides of(StreamingSymmetricHashJoinExec join, long operatorMs, Map<UUID, Bound> nodes) {
    JoinSides sides =
        new JoinSides(
            SideEviction.of(join, true, reached(join.right(), operatorMs, nodes)),
            SideEviction.of(join, false, reached(join.left(), operatorMs, nodes)));
    sides.refuseEndlessOuter(join);
    return sides;
  }

  /** The predicates by which the join evicts in this batch. */
  public JoinStateWatermarkPredicates predicates() {
    return new JoinStateWatermarkPredicates(by(left), by(right));
  }

  /**
   * The times by which rows are freed, apart from keys. Each is in a comparison of the condition that is not true where
   * the time is NULL.
   */
  List<Expression> times() {
    return Stream.of(left, right)
        .filter(Objects::nonNull)
        .filter(side -> side.by() instanceof JoinStateValueWatermarkPredicate)
        .flatMap(side -> Scala.list(side.by().expr().references().toSeq()).stream())
        .map(a -> (Expression) a)
        .toList();
  }

  private static Option<JoinStateWatermarkPredicate> by(SideEviction side) {
    return Option.apply(side == null ? null : side.by());
  }

  /**
   * The same, except that a left semi join evicts its right state by the watermark of the batch before,
   * and no row of this batch is below that. Since SPARK-55973 Spark processes the right rows first, does
   * not keep those that the batch evicts, and so loses their matches with left rows of the batch. The
   * promise of the join does not depend on this.
   */
  JoinStateWatermarkPredicates evicting(StreamingSymmetricHashJoinExec join) {
    if (!join.joinType().equals(LeftSemi$.MODULE$)) {
      return predicates();
    }
    Object late = Scala.orNull(join.eventTimeWatermarkForLateEvents());
    return new JoinSides(left, SideEviction.of(join, false, reached(late == null ? 0 : (Long) late))).predicates();
  }

  private static SideEviction.Reached reached(SparkPlan side, long operatorMs, Map<UUID, Bound> nodes) {
    List<Bound> bounds = new ArrayList<>();
    collect(side, nodes, bounds);
    if (bounds.isEmpty() || bounds.stream().anyMatch(b -> b == null || b.mixed() || !b.isKnown())) {
      return reached(operatorMs);
    }
    Bound weakest = bounds.stream().reduce(Bound::weakest).get();
    return new SideEviction.Reached(weakest.floor(), weakest.floor(), Math.max(0, weakest.windowMs()));
  }

  /** What a watermark says: a row at the watermark itself is late for an operator on raw times. */
  private static SideEviction.Reached reached(long watermarkMs) {
    return new SideEviction.Reached(watermarkMs * 1000, watermarkMs * 1000 + 1, watermarkMs);
  }

  /** Collects the bounds of a side's watermark nodes; null for a node without one, or an operator that keeps rows. */
  private static void collect(SparkPlan node, Map<UUID, Bound> nodes, List<Bound> bounds) {
    if (node instanceof EventTimeWatermarkExec watermark) {
      bounds.add(nodes.get(watermark.nodeId()));
    } else if (node instanceof StateStoreWriter && !(node instanceof StreamingDeduplicateExec)) {
      bounds.add(null);
    } else {
      Scala.list(node.children()).forEach(child -> collect(child, nodes, bounds));
    }
  }

  /** An outer join outputs a row without a match when it evicts it, so it must be able to evict it. */
  private void refuseEndlessOuter(StreamingSymmetricHashJoinExec join) {
    boolean outerLeft = join.joinType().equals(LeftOuter$.MODULE$) || join.joinType().equals(FullOuter$.MODULE$);
    boolean outerRight = join.joinType().equals(RightOuter$.MODULE$) || join.joinType().equals(FullOuter$.MODULE$);
    if (outerLeft && left == null || outerRight && right == null) {
      throw new IllegalArgumentException(
          "The " + join.joinType().sql() + " JOIN on " + condition(join) + " keeps " + keptForEver() + " rows"
              + " forever, so their results without a match would never be emitted: no part of the condition"
              + " determines when they can no longer be matched. Compare the event time columns of both streams"
              + " themselves, plus or minus an interval, such as b.rowtime BETWEEN a.rowtime AND a.rowtime +"
              + " INTERVAL 10 MINUTES, or their CAST to BIGINT, DOUBLE or DECIMAL plus or minus a number of"
              + " seconds, or join on equal times or windows.");
    }
  }

  /** The join's keys and condition as SQL. */
  static String condition(StreamingSymmetricHashJoinExec join) {
    String keys =
        IntStream.range(0, join.leftKeys().size())
            .mapToObj(i -> join.leftKeys().apply(i).sql() + " = " + join.rightKeys().apply(i).sql())
            .collect(Collectors.joining(" AND "));
    var more = Scala.orNull(join.condition().full());
    return more == null ? keys : keys.isEmpty() ? more.sql() : keys + " AND " + more.sql();
  }

  /** False if a row of one side is kept forever; then the join's results can have any time. */
  boolean evictsBoth() {
    return left != null && right != null;
  }

  /** The side whose rows are kept forever, in words. */
  String keptForEver() {
    if (left != null) {
      return "the right stream's";
    }
    return right != null ? "the left stream's" : "both streams'";
  }

  /** The watermark of the join's results: no result is earlier than the rows in both states. */
  long output(long inputMs) {
    return Stream.of(left, right)
        .filter(Objects::nonNull)
        .mapToLong(SideEviction::keptMs)
        .reduce(inputMs, Math::min);
  }
}

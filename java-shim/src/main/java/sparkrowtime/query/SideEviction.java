package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import sparkrowtime.compat.StatePredicates;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The rows of one side of a stream-stream join that no later row of the other side can match. Spark also
 * derives this from the condition, but it treats a calendar day as 24 hours, a rounded time as the time
 * itself, and any column of the side as its event time. Only the predicate comes from Spark here.
 *
 * <p>Law: only those keys and conditions count that {@link TimeSum} supports and that compare the event
 * times of both sides.
 *
 * @param by the predicate that evicts the rows
 * @param keptMs the event times of the rows that are kept are later than this
 * @param behindMs by how much this lies behind what the other side has reached. For statuses
 */
record SideEviction(JoinStateWatermarkPredicate by, long keptMs, long behindMs) {

  SideEviction(JoinStateWatermarkPredicate by, long keptMs, Reached other) {
    this(by, keptMs, Math.max(0, Math.floorDiv(other.keyFloor() - 1, 1000L) - keptMs));
  }

  /**
   * The progress of the other side.
   *
   * @param floor no later row is below it, in microseconds
   * @param keyFloor the same for a row that may be matched by an equal time
   * @param windowMs no later row falls into a window that ends at it or earlier
   */
  record Reached(long floor, long keyFloor, long windowMs) {}

  /** Null if no key and no condition says when a row can be evicted. */
  static SideEviction of(StreamingSymmetricHashJoinExec join, boolean ofLeft, Reached other) {
    Side side = new Side(join, ofLeft);
    int key = timeKey(join);
    SideEviction byKey = key >= 0 ? side.byKey(key, other) : null;
    return byKey != null ? byKey : side.byTime(other);
  }

  /** The key by which Spark evicts: the first marked key on the left, or else on the right; -1 for none. */
  private static int timeKey(StreamingSymmetricHashJoinExec join) {
    int left = marked(Scala.list(join.leftKeys()));
    return left >= 0 ? left : marked(Scala.list(join.rightKeys()));
  }

  private static int marked(List<Expression> keys) {
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) instanceof NamedExpression key && Rowtime.isWatermarked(key.toAttribute())) {
        return i;
      }
    }
    return -1;
  }

  private static Attribute time(SparkPlan side) {
    return Scala.list(side.output()).stream().filter(Rowtime::isWatermarked).findFirst().orElse(null);
  }

  private record Side(StreamingSymmetricHashJoinExec join, boolean isLeft) {
    private SparkPlan own() {
      return isLeft ? join.left() : join.right();
    }

    private SparkPlan other() {
      return isLeft ? join.right() : join.left();
    }

    private SideEviction byKey(int place, Reached reached) {
      Expression key = (isLeft ? join.leftKeys() : join.rightKeys()).apply(place);
      Expression others = (isLeft ? join.rightKeys() : join.leftKeys()).apply(place);
      Long least = leastKeyMs(others, reached);
      Long ahead = least == null ? null : aheadMicros(key, least * 1000);
      return ahead == null
          ? null
          : new SideEviction(keyPredicate(least), Math.floorDiv(least * 1000 - ahead, 1000L), reached);
    }

    /** A time, in ms, below all later keys of the other side; null if it is not known. */
    private Long leastKeyMs(Expression key, Reached reached) {
      Attribute time = time(other());
      if (time != null && time.dataType() instanceof StructType) {
        return key.semanticEquals(time) ? reached.windowMs() : null;
      }
      TimeSum sum = TimeSum.of(key, reached.keyFloor());
      return sum == null || !sum.isOf(time) ? null : (Long) Math.floorDiv(reached.keyFloor() + sum.least() - 1, 1000L);
    }

    /**
     * By how much a key of the side itself, at or after {@code least}, can be ahead of its event time; null if
     * that is not known.
     */
    private Long aheadMicros(Expression key, long least) {
      Attribute time = time(own());
      if (time == null || key.semanticEquals(time)) {
        return 0L;
      }
      TimeSum sum = TimeSum.reaching(key, least);
      return sum == null || !sum.isOf(time) ? null : (Long) sum.most();
    }

    private SideEviction byTime(Reached reached) {
      Attribute time = time(own());
      Attribute others = time(other());
      if (time == null || others == null || !(time.dataType() instanceof TimestampType)) {
        return null;
      }
      return conjuncts(Scala.orNull(join.condition().full())).stream()
          .map(c -> limitMs(c, time, others, reached.floor()))
          .filter(Objects::nonNull)
          .max(Long::compare)
          .map(ms -> new SideEviction(timePredicate(time, others, ms), ms, reached))
          .orElse(null);
    }

    /**
     * Rows up to this time satisfy the condition with no later row; null if the condition does not limit the
     * time.
     */
    private static Long limitMs(Expression condition, Attribute time, Attribute others, long floor) {
      if (!(condition instanceof BinaryComparison both)) {
        return null;
      }
      boolean isLess = condition instanceof LessThan || condition instanceof LessThanOrEqual;
      boolean isStrict = condition instanceof LessThan || condition instanceof GreaterThan;
      if (!isLess && !isStrict && !(condition instanceof GreaterThanOrEqual)) {
        return null;
      }
      TimeSum rest =
          isLess
              ? TimeSum.difference(both.left(), both.right(), floor)
              : TimeSum.difference(both.right(), both.left(), floor);
      boolean limits = rest != null && rest.isBetween(others, time);
      return limits ? (Long) Math.floorDiv(floor + rest.least() - (isStrict ? 0 : 1), 1000L) : null;
    }

    private JoinStateWatermarkPredicate keyPredicate(long ms) {
      return predicate(join.leftKeys(), join.rightKeys(), Scala.orNull(join.condition().full()), ms);
    }

    /** The predicate of a condition that Spark solves for the time itself. */
    private JoinStateWatermarkPredicate timePredicate(Attribute time, Attribute others, long ms) {
      return predicate(Scala.seq(List.of()), Scala.seq(List.of()), new GreaterThan(time, others), ms);
    }

    private JoinStateWatermarkPredicate predicate(
        scala.collection.immutable.Seq<Expression> left,
        scala.collection.immutable.Seq<Expression> right,
        Expression condition,
        long ms) {
      JoinStateWatermarkPredicates both =
          StatePredicates.of(join.left().output(), join.right().output(), left, right, Option.apply(condition), ms);
      JoinStateWatermarkPredicate own = Scala.orNull(isLeft ? both.left() : both.right());
      if (own == null) {
        throw new ShimMismatch("Spark to evict a join's rows by " + condition, null);
      }
      return own;
    }
  }

  static List<Expression> conjuncts(Expression condition) {
    List<Expression> all = new ArrayList<>();
    if (condition instanceof And and) {
      all.addAll(conjuncts(and.left()));
      all.addAll(conjuncts(and.right()));
    } else if (condition != null) {
      all.add(condition);
    }
    return all;
  }
}

package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateKeyWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import sparkrowtime.plan.Operators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * What the stateful operators of a batch have evicted. For each time column this is a time in
 * microseconds; all that the operators still keep is later (for a window, its end is).
 *
 * <p>Law: if several operators keep state by one column, the earliest time counts. If one of them evicts
 * by something else, nothing is known.
 */
public class Evictions {
  /** Evictions as if each operator that keeps rows had evicted something, so that its times have a bound. */
  static final Evictions SOME =
      new Evictions() {
        @Override
        public Long ofGroups(Attribute by) {
          return Rowtime.isWatermarked(by) ? 0L : null;
        }

        @Override
        public Long ofJoins(Attribute time) {
          return ofGroups(time);
        }

        @Override
        public Long ofEmitted(Attribute time) {
          return 0L;
        }

        @Override
        public Long followed() {
          return 0L;
        }
      };

  private static final long NOTHING = Long.MIN_VALUE;

  private final Map<ExprId, Long> groups = new HashMap<>();
  private final Map<ExprId, Long> joins = new HashMap<>();
  private final Map<ExprId, Long> emitted = new HashMap<>();
  private Long followed;

  /** All later results of the aggregations by this column are above this time; null if not known. */
  public Long ofGroups(Attribute by) {
    return groups.get(by.exprId());
  }

  /** All rows that joins still keep have this column above this time; null if not known. */
  public Long ofJoins(Attribute time) {
    Long above = joins.get(time.exprId());
    return above == null || above == NOTHING ? null : above;
  }

  /**
   * All later values of this column, the event time that a state function of the user declares, are above this
   * time; null if not known.
   */
  public Long ofEmitted(Attribute time) {
    Long above = emitted.get(time.exprId());
    return above == null || above == 0 ? null : above;
  }

  public void emitted(Attribute time, long watermarkMs) {
    emitted.merge(time.exprId(), watermarkMs * 1000, Math::min);
  }

  /** The floor below which this library's state functions have output all rows; null without such functions. */
  public Long followed() {
    return followed;
  }

  public void followed(long floor) {
    followed = followed == null ? floor : Math.min(followed, floor);
  }

  public void aggregated(StateStoreWriter operator, long watermarkMs) {
    for (Attribute key : Operators.times((SparkPlan) operator)) {
      if (watermarkMs > 0) {
        groups.merge(key.exprId(), watermarkMs * 1000, Math::min);
      }
    }
  }

  public void joined(StreamingSymmetricHashJoinExec join, JoinStateWatermarkPredicates by) {
    joined(join.left(), Scala.list(join.leftKeys()), Scala.orNull(by.left()));
    joined(join.right(), Scala.list(join.rightKeys()), Scala.orNull(by.right()));
  }

  private void joined(SparkPlan side, List<Expression> keys, JoinStateWatermarkPredicate by) {
    for (Attribute time : Scala.list(side.output())) {
      if (Rowtime.isWatermarked(time)) {
        long evicted = by == null ? 0 : evicted(by);
        long above = evicted > 0 && isBy(time, keys, by) ? evicted : NOTHING;
        joins.merge(time.exprId(), above, Math::min);
      }
    }
  }

  private static boolean isBy(Attribute time, List<Expression> keys, JoinStateWatermarkPredicate by) {
    if (by instanceof JoinStateKeyWatermarkPredicate) {
      return Scala.list(by.expr().collect(Scala.only(BoundReference.class))).stream()
          .anyMatch(key -> keys.get(key.ordinal()).semanticEquals(time));
    }
    return by.expr().references().contains(time);
  }

  /** The largest time, in microseconds, of the rows that a predicate evicts. */
  private static long evicted(JoinStateWatermarkPredicate by) {
    if (by.expr() instanceof LessThanOrEqual upTo && upTo.right() instanceof Literal time) {
      return (Long) time.value();
    }
    throw new ShimMismatch("a join to evict what is at a time or before it, not by " + by.expr(), null);
  }
}

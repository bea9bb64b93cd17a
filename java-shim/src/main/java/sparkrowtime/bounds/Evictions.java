package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateKeyWatermarkPredicate;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicate;
import sparkrowtime.query.JoinSides;
import sparkrowtime.query.Operators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * What the stateful operators of a batch have evicted: by time column, the microsecond above which
 * everything is that they still keep (the window's end, for a window).
 *
 * <p>Law: where several operators keep state by one column the earliest counts, and nothing is known
 * where one of them evicts by something else.
 */
public class Evictions {
  private static final long NOTHING = Long.MIN_VALUE;
  private final Map<ExprId, Long> groups = new HashMap<>();
  private final Map<ExprId, Long> joins = new HashMap<>();

  /** Above which all later results of the aggregations by this column are; null if not known. */
  public Long ofGroups(Attribute by) {
    return groups.get(by.exprId());
  }

  /** Above which all rows of this column are that joins still keep; null if not known. */
  public Long ofJoins(Attribute time) {
    Long above = joins.get(time.exprId());
    return above == null || above == NOTHING ? null : above;
  }

  private Long followed;

  /** The floor below which the state functions that follow one have given out all rows; null if none. */
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

  public void joined(StreamingSymmetricHashJoinExec join, JoinSides sides) {
    joined(join.left(), Scala.list(join.leftKeys()), Scala.orNull(sides.predicates().left()));
    joined(join.right(), Scala.list(join.rightKeys()), Scala.orNull(sides.predicates().right()));
  }

  private void joined(SparkPlan side, List<Expression> keys, JoinStateWatermarkPredicate by) {
    for (Attribute time : Scala.list(side.output())) {
      if (Rowtime.isWatermarked(time)) {
        long above = by != null && JoinSides.evictedMs(by) > 0 && isBy(time, keys, by) ? JoinSides.evictedMs(by) * 1000 : NOTHING;
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
}

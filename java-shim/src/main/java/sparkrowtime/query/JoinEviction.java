package sparkrowtime.query;

import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import sparkrowtime.support.Scala;

/**
 * The physical rule that gives each stream-stream join of a query with bounds the eviction of {@link
 * JoinSides} and the condition of {@link NullKeys}. Spark's own rules have given the join its state and
 * watermark before.
 *
 * <p>Law: plans outside a running query with bounds do not change.
 */
public final class JoinEviction extends PlanRule {
  @Override
  SparkPlan rewrite(SparkPlan node) {
    if (!(node instanceof StreamingSymmetricHashJoinExec join) || join.stateInfo().isEmpty()) {
      return node;
    }
    BoundedQuery query = BoundedQuery.ofThisThread();
    JoinSides sides = query == null ? null : query.sidesOf(join.stateInfo().get().operatorId());
    return sides == null
        ? join
        : NullKeys.unmatched(Scala.copy(join, JoinStateWatermarkPredicates.class, sides.evicting(join)), sides);
  }
}

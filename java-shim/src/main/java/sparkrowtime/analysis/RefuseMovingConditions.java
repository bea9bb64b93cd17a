package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import sparkrowtime.bounds.Monotonic;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Refuses a join of streams that compares its sides by a value that differs between batches or runs, such as
 * the current time or a session variable. Rows are freed by the value of one batch, and would have matches by
 * that of a later one. So the results would depend on where batches end. A condition on one side alone is a filter; one
 * above an inner join is a condition of that join for Spark's optimizer.
 */
final class RefuseMovingConditions {
  private RefuseMovingConditions() {}

  static void check(LogicalPlan node) {
    if (StatefulNodes.isStreamJoin(node) && ((Join) node).condition().isDefined()) {
      checkPart(((Join) node).condition().get(), (Join) node);
    } else if (node instanceof Filter filter && innerJoin(filter.child()) != null) {
      checkPart(filter.condition(), innerJoin(filter.child()));
    }
  }

  /** The inner join of streams of which filters above are conditions; null if there is none. */
  private static Join innerJoin(LogicalPlan plan) {
    if (plan instanceof Filter || plan instanceof SubqueryAlias) {
      return innerJoin(plan.children().apply(0));
    }
    boolean isInner = plan instanceof Join join && join.joinType() instanceof InnerLike;
    return isInner && StatefulNodes.isStreamJoin(plan) ? (Join) plan : null;
  }

  private static void checkPart(Expression condition, Join join) {
    if (condition instanceof And both) {
      checkPart(both.left(), join);
      checkPart(both.right(), join);
    } else if (isOfBothSides(condition, join) && condition.exists(Scala.function(RefuseMovingConditions::moves))) {
      throw new IllegalArgumentException(
          "The condition of a join of two streams compares them by a value that is another one in a later batch or run,"
              + " so its results would depend on where batches end: " + condition.sql() + ". Write a constant instead of"
              + " current_timestamp(), current_date(), a session variable and the like.");
    }
  }

  private static boolean isOfBothSides(Expression condition, Join join) {
    return !condition.references().subsetOf(join.left().outputSet())
        && !condition.references().subsetOf(join.right().outputSet());
  }

  private static boolean moves(Expression part) {
    return part.foldable() && !Monotonic.isConstant(part);
  }
}

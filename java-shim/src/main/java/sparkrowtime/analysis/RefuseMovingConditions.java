package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.bounds.Monotonic;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Refuses a join of streams that compares its sides by a value that differs between batches or runs, such as
 * the current time or a session variable. Rows are freed by the value of one batch, and would have matches by
 * that of a later one. So the results would depend on where batches end. A condition on one side alone is a filter.
 */
final class RefuseMovingConditions {
  private RefuseMovingConditions() {}

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(RefuseMovingConditions::checkNode));
  }

  private static void checkNode(LogicalPlan node) {
    if (StatefulNodes.isStreamJoin(node) && ((Join) node).condition().isDefined()) {
      checkPart(((Join) node).condition().get(), (Join) node);
    }
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

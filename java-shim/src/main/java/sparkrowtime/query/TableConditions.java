package sparkrowtime.query;

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Finds conditions above operators that keep rows, which ask a table: {@code HAVING k >= (SELECT min(least) FROM limits)}.
 * Spark reads a table again in each batch. The optimizer moves such a condition to below the aggregation, where it would leave
 * rows out by what the table said in their batch.
 *
 * <p>Law: a result is judged as a whole, by what the table says in the batch that completes it.
 */
final class TableConditions {
  private TableConditions() {}

  static boolean areIn(LogicalPlan plan) {
    return plan.exists(Scala.function(TableConditions::isCondition));
  }

  private static boolean isCondition(LogicalPlan node) {
    return node instanceof Filter filter
        && filter.condition().exists(Scala.function(part -> part instanceof SubqueryExpression))
        && filter.child().exists(Scala.function(below -> StatefulNodes.keepsRows(below) || below instanceof CTERelationRef));
  }
}

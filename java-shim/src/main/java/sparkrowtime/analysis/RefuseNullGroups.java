package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses an aggregation in append mode by a time that can be NULL, such as that of the right side of a
 * left outer join. No watermark ever passes NULL, so the group of NULL would never be output, and its
 * state would stay.
 */
final class RefuseNullGroups {
  private final Definitions definitions;

  private RefuseNullGroups(LogicalPlan plan) {
    definitions = new Definitions(plan);
  }

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(new RefuseNullGroups(plan)::checkNode));
  }

  private void checkNode(LogicalPlan node) {
    if (node instanceof Aggregate aggregate && aggregate.isStreaming()) {
      Scala.list(aggregate.groupingExpressions()).forEach(e -> checkGroup(e, aggregate.child()));
    } else if (node.isStreaming() && PassingOperators.isDistinct(node)) {
      Scala.list(node.output()).forEach(a -> checkGroup(a, node.children().apply(0)));
    }
  }

  private void checkGroup(Expression group, LogicalPlan input) {
    NullableTimes times = new NullableTimes(definitions);
    if (group instanceof Attribute time && Rowtime.isWatermarked(time) && times.canBeNull(time, input)) {
      throw new IllegalArgumentException(
          "GROUP BY " + time.sql() + ": this time can be NULL, since " + times.reason() + ", and in append mode the"
              + " group of NULL is never complete, so its rows would never come out. Leave them out below the"
              + " aggregation (WHERE " + time.sql() + " IS NOT NULL), or " + times.instead() + ".");
    }
  }
}

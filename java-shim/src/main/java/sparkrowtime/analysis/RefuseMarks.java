package sparkrowtime.analysis;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import sparkrowtime.support.Scala;
import sparkrowtime.topics.LateMark;

/**
 * Refuses {@code rowtime_in_time} anywhere but as a condition of a WHERE. {@link TableReads} has given each such condition a
 * filter of its own; elsewhere the function would find no bound. A rule behind those of resolution, since Spark's own checks,
 * which follow, do not know the function by its name.
 */
public final class RefuseMarks extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan.resolved()) {
      plan.foreach(Scala.each(RefuseMarks::check));
    }
    return plan;
  }

  private static void check(LogicalPlan node) {
    boolean isFilterOfOne = node instanceof Filter filter && LateMark.of(filter.condition()) != null;
    List<Expression> others = isFilterOfOne ? List.of() : Scala.list(node.expressions());
    others.stream().filter(TableReads::isMarked).findFirst().ifPresent(RefuseMarks::refuse);
  }

  private static void refuse(Expression e) {
    Expression call = e.find(part -> LateMark.of(part) != null).get();
    String time = LateMark.time(call).sql();
    throw new IllegalArgumentException(
        "rowtime_in_time(" + time + ") is a condition of a WHERE, alone or with others by AND, and here it is within "
            + e.sql().replace(call.sql(), "rowtime_in_time(" + time + ")") + ". Put it into a WHERE of its own, as of a subquery, and"
            + " the rest above: SELECT ... FROM (SELECT * FROM orders WHERE rowtime_in_time(" + time + ")) WHERE ...");
  }
}

package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/** What the names of WITH stand for in a query's plan. A reference has columns of its own, by place. */
public final class Definitions {
  private final Map<Long, LogicalPlan> bodies = new HashMap<>();

  public Definitions(LogicalPlan plan) {
    plan.foreach(Scala.each(this::add));
  }

  private void add(LogicalPlan node) {
    if (node instanceof CTERelationDef definition) {
      bodies.put(definition.id(), definition.child());
    }
  }

  /** What {@code leaf} refers to; null where it is no reference. */
  public LogicalPlan body(LogicalPlan leaf) {
    return leaf instanceof CTERelationRef reference ? bodies.get(reference.cteId()) : null;
  }

  /** The place among the columns of {@code plan} of {@code column}, which is one of them. */
  public static int place(Attribute column, LogicalPlan plan) {
    List<Attribute> own = Scala.list(plan.output());
    return IntStream.range(0, own.size())
        .filter(i -> own.get(i).exprId().equals(column.exprId()))
        .findFirst()
        .getAsInt();
  }
}

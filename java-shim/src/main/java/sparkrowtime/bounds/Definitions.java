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

/** The definitions of the names of WITH in a query's plan. A reference has columns of its own, in the same order. */
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

  /** The plan that {@code leaf} refers to; null if it is no reference. */
  public LogicalPlan body(LogicalPlan leaf) {
    return leaf instanceof CTERelationRef reference ? bodies.get(reference.cteId()) : null;
  }

  /** The index of {@code column} among the columns of {@code plan}, which has it. */
  public static int place(Attribute column, LogicalPlan plan) {
    List<Attribute> own = Scala.list(plan.output());
    return IntStream.range(0, own.size())
        .filter(i -> own.get(i).exprId().equals(column.exprId()))
        .findFirst()
        .getAsInt();
  }
}

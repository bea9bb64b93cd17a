package sparkrowtime.bounds;

import java.util.List;
import java.util.function.Predicate;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/** Describes where a column of a plan's output comes from, for messages. */
public final class Origin {
  private Origin() {}

  /**
   * The expression that the user wrote, or the operator that produces the column or loses its bound.
   *
   * @param bounded tells of a plan whether the column has a bound in it
   */
  public static String of(Attribute column, LogicalPlan plan, Predicate<LogicalPlan> bounded) {
    String expression = expression(column, plan);
    return expression != null ? expression : maker(column, plan, bounded).nodeName();
  }

  /** The expression that the user wrote, or the operator that produces the column. */
  public static String of(Attribute column, LogicalPlan plan) {
    return of(column, plan, child -> false);
  }

  /** The expression that the user wrote; null if the column is a stream's, or is produced by an operator. */
  public static String expression(Attribute column, LogicalPlan plan) {
    Alias alias = alias(column, plan);
    return alias == null ? null : shown(alias.child());
  }

  /** The expression as SQL. Spark has rewritten window(...) to arithmetic, so a window is shown as such. */
  private static String shown(Expression e) {
    boolean window = e instanceof CreateNamedStruct && !WindowBounds.times(e).isEmpty();
    return window ? "window(" + WindowBounds.times(e).get(0).child().sql() + ", ...)" : e.sql();
  }

  /** Where the plan defines the column; null if it is a source's, or is produced by an operator. */
  public static Alias alias(Attribute column, LogicalPlan plan) {
    List<LogicalPlan> nodes = Scala.list(plan.collect(Scala.only(LogicalPlan.class)));
    return (Alias)
        nodes.stream()
            .flatMap(node -> Scala.list(node.expressions()).stream())
            .filter(e -> e instanceof Alias alias && alias.exprId().equals(column.exprId()))
            .findFirst()
            .orElse(null);
  }

  private static LogicalPlan maker(Attribute column, LogicalPlan plan, Predicate<LogicalPlan> bounded) {
    return Scala.list(plan.children()).stream()
        .filter(child -> child.outputSet().contains(column) && !bounded.test(child))
        .findFirst()
        .map(child -> maker(column, child, bounded))
        .orElse(plan);
  }
}

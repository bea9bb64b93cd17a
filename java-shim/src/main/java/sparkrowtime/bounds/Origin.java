package sparkrowtime.bounds;

import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/** Describes where a column of a plan's output comes from, for messages. */
public final class Origin {
  private Origin() {}

  /** The expression that the user wrote, or the operator that produces the column. */
  public static String of(Attribute column, LogicalPlan plan) {
    String expression = expression(column, plan);
    return expression != null ? expression : loser(column, plan, child -> new Columns()).nodeName();
  }

  /**
   * The expression that the user wrote, or the operator, at which a column has lost its bound. An expression that keeps
   * bounds has lost none: then it is where the column that it is made of has.
   *
   * @param bounds the bounds in each part of the plan
   */
  public static String ofLoss(Attribute column, LogicalPlan plan, Function<LogicalPlan, Columns> bounds) {
    LogicalPlan node = loser(column, plan, bounds);
    Expression written = aliases(column, node).findFirst().map(Alias::child).orElse(null);
    if (written == null) {
      return node.nodeName();
    }
    List<Attribute> used = ExprBounds.keeps(written) ? Scala.list(written.references().toSeq()) : List.of();
    for (LogicalPlan child : Scala.list(node.children())) {
      for (Attribute lost : used) {
        if (child.outputSet().contains(lost) && !bounds.apply(child).has(lost)) {
          return ofLoss(lost, child, bounds);
        }
      }
    }
    return shown(written);
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
    return nodes.stream().flatMap(node -> aliases(column, node)).findFirst().orElse(null);
  }

  private static Stream<Alias> aliases(Attribute column, LogicalPlan node) {
    return Scala.list(node.expressions()).stream()
        .filter(e -> e instanceof Alias alias && alias.exprId().equals(column.exprId()))
        .map(Alias.class::cast);
  }

  /** The lowest operator in which the column is, and has no bound. */
  private static LogicalPlan loser(Attribute column, LogicalPlan plan, Function<LogicalPlan, Columns> bounds) {
    return Scala.list(plan.children()).stream()
        .filter(child -> child.outputSet().contains(column) && !bounds.apply(child).has(column))
        .findFirst()
        .map(child -> loser(column, child, bounds))
        .orElse(plan);
  }
}

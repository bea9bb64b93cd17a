package sparkrowtime.analysis;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Spark's mark of a watermark is in the metadata of each reference to a column. If a column gets the mark
 * after the nodes above it were resolved, their references lack it. This class adds it.
 */
final class Marks {
  private Marks() {}

  /** The plan with the mark on each reference to a column that has the mark in the node below. */
  static LogicalPlan refreshed(LogicalPlan plan) {
    return plan.resolveOperatorsUp(Scala.rewriting(Marks::refreshedNode));
  }

  private static LogicalPlan refreshedNode(LogicalPlan node) {
    Map<ExprId, Attribute> marked = new HashMap<>();
    Scala.list(node.children()).stream()
        .filter(child -> child.resolved())
        .flatMap(child -> Scala.list(child.output()).stream())
        .filter(Rowtime::isWatermarked)
        .forEach(a -> marked.put(a.exprId(), a));
    return marked.isEmpty()
        ? node
        : node.transformExpressionsUp(Scala.rewriting(e -> refreshed(e, marked)));
  }

  private static Expression refreshed(Expression e, Map<ExprId, Attribute> marked) {
    boolean lacks = e instanceof AttributeReference a && marked.containsKey(a.exprId()) && !Rowtime.isWatermarked(a);
    return lacks ? ((AttributeReference) e).withMetadata(marked.get(((AttributeReference) e).exprId()).metadata()) : e;
  }
}

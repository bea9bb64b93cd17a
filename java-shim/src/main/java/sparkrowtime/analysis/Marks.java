package sparkrowtime.analysis;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.immutable.Seq;
import sparkrowtime.bounds.Definitions;
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

  /**
   * The plan with the mark on each reference to a name of WITH whose definition has the mark. Such a reference has
   * columns of its own, which were made before a derived time in the definition got the mark.
   */
  static LogicalPlan ofNames(LogicalPlan plan) {
    Definitions definitions = new Definitions(plan);
    LogicalPlan marked = plan.resolveOperatorsUp(Scala.rewriting(node -> ofName(node, definitions.body(node))));
    return marked == plan ? plan : refreshed(marked);
  }

  private static LogicalPlan ofName(LogicalPlan node, LogicalPlan body) {
    if (body == null || !body.resolved() || !node.resolved()) {
      return node;
    }
    List<Attribute> own = Scala.list(node.output());
    List<Attribute> made = Scala.list(body.output());
    List<Attribute> marked = IntStream.range(0, own.size()).mapToObj(i -> like(own.get(i), made.get(i))).toList();
    return marked.equals(own) ? node : Scala.copy(node, Seq.class, Scala.seq(marked));
  }

  private static Attribute like(Attribute own, Attribute made) {
    boolean lacks = Rowtime.isWatermarked(made) && !Rowtime.isWatermarked(own);
    return lacks ? own.withMetadata(made.metadata()) : own;
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

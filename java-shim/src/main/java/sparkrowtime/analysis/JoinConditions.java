package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.Between;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionDef;
import org.apache.spark.sql.catalyst.expressions.CommonExpressionRef;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Writes {@code b.rowtime - INTERVAL 1 HOUR BETWEEN x AND y} in the condition of a join of streams as two
 * comparisons. Spark would compute what is compared twice in a column below the join. The condition would then not
 * contain the event time, and the join could not free rows by it.
 */
public final class JoinConditions {
  private JoinConditions() {}

  static LogicalPlan compared(Join join) {
    boolean concerns = join.resolved() && StatefulNodes.isStreamJoin(join);
    return concerns ? join.transformExpressionsUp(Scala.rewriting(JoinConditions::compared)) : join;
  }

  private static Expression compared(Expression e) {
    boolean once = e instanceof Between between
        && between.replacement() instanceof With with
        && Scala.list(with.defs()).stream().allMatch(Expression::deterministic);
    return once ? inlined((With) ((Between) e).replacement()) : e;
  }

  /** The expression without common sub-expressions, whose numbers differ from run to run. */
  public static Expression inlined(With with) {
    return with.child().transformUp(Scala.rewriting(e -> e instanceof CommonExpressionRef r ? value(r, with) : e));
  }

  private static Expression value(CommonExpressionRef reference, With with) {
    return Scala.list(with.defs()).stream()
        .filter(d -> d.id().equals(reference.id()))
        .findFirst()
        .map(CommonExpressionDef::child)
        .orElse(reference);
  }
}

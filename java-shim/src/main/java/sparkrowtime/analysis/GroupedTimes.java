package sparkrowtime.analysis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedHaving;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Supports GROUP BY date_trunc('HOUR', rowtime). Spark requires a watermarked column for an aggregation,
 * and an expression is not one. If a bound follows the expression, it becomes a column below the
 * aggregation, unless it is one, and gets the automatic node. Called at analysis.
 *
 * <p>Law: the aggregation's own columns do not change.
 */
final class GroupedTimes {
  private GroupedTimes() {}

  /** Whether HAVING or ORDER BY must be resolved first: Spark resolves them by the expressions as written. */
  static boolean isAwaited(LogicalPlan plan) {
    return plan.exists(GroupedTimes::isUnresolved);
  }

  private static boolean isUnresolved(Object node) {
    return node instanceof UnresolvedHaving || node instanceof Sort sort && !sort.resolved();
  }

  static LogicalPlan asColumn(Aggregate aggregate) {
    Expression time = aggregate.resolved() && aggregate.isStreaming() ? time(aggregate) : null;
    if (time == null) {
      return aggregate;
    } else if (time instanceof Attribute own) {
      return AutoWatermark.with(aggregate, List.of(AutoWatermark.movedTo(own, aggregate.child())));
    }
    Alias column = named(time);
    LogicalPlan below = above(column, aggregate.child());
    Attribute watched = marked(below, column);
    LogicalPlan above = AutoWatermark.with(aggregate, List.of(below));
    return above.transformExpressionsDown(Scala.rewriting(e -> e.semanticEquals(time) ? watched : e));
  }

  /** The plan with one more column, and the automatic node on that column. */
  static LogicalPlan above(Alias column, LogicalPlan plan) {
    List<NamedExpression> columns = new ArrayList<>(Scala.list(plan.output()));
    columns.add(column);
    return AutoWatermark.movedTo(column, new Project(Scala.seq(columns), plan));
  }

  static Alias named(Expression time) {
    return new Alias(
        time, time.sql(), NamedExpression.newExprId(), Scala.seq(List.of()), Option.empty(), Scala.seq(List.of()));
  }

  static Attribute marked(LogicalPlan below, Alias column) {
    return Scala.list(below.output()).stream()
        .filter(a -> a.exprId().equals(column.exprId()))
        .findFirst()
        .get();
  }

  /** The first grouping expression that a bound follows; null if there is none, or a watermarked column. */
  private static Expression time(Aggregate aggregate) {
    List<Expression> groups = Scala.list(aggregate.groupingExpressions()).stream().map(GroupedTimes::bare).toList();
    boolean has = groups.stream().anyMatch(GroupedTimes::isWatermarked);
    ExprBounds bounds = has ? null : AutoWatermark.boundsOver(aggregate.child());
    return bounds == null
        ? null
        : groups.stream()
            .filter(e -> e.dataType() instanceof TimestampType && !e.foldable() && bounds.of(e) != null)
            .findFirst()
            .orElse(null);
  }

  static Expression bare(Expression e) {
    return e instanceof Alias alias ? alias.child() : e;
  }

  private static boolean isWatermarked(Expression e) {
    return e instanceof Attribute a && Rowtime.isWatermarked(a);
  }
}

package sparkrowtime.analysis;

import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PipeOperator;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import scala.Option;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Supports GROUP BY window(rowtime + INTERVAL 1 HOUR, ...). Spark marks a window of a column with a
 * watermark, but not a window of an expression. If a bound follows the expression, it becomes a column
 * below the window, with the automatic node on it, and the window gets the mark. A window of a column that
 * got the mark after Spark had made the window gets it, too.
 *
 * <p>By then Spark has rewritten the window to a node that computes it (a projection, or an Expand for
 * hopping windows), and to filters between that node and the aggregation.
 */
final class WindowedTimes {
  private WindowedTimes() {}

  static LogicalPlan asColumn(Aggregate aggregate) {
    Attribute window = aggregate.resolved() && aggregate.isStreaming() ? unmarked(aggregate) : null;
    LogicalPlan maker = window == null ? null : maker(window, aggregate.child());
    Expression time = maker == null ? null : time(window, maker);
    if (time instanceof Attribute known && Rowtime.isWatermarked(known)) {
      return rewritten(aggregate, maker, marking(maker, window, known.metadata()));
    }
    ExprBounds bounds = time == null ? null : AutoWatermark.boundsOver(onlyChild(maker));
    boolean follows = bounds != null && bounds.of(time) != null;
    return follows ? rewritten(aggregate, maker, watched(window, time, maker)) : aggregate;
  }

  /** Null if the aggregation already groups by a time with a watermark. */
  private static Attribute unmarked(Aggregate aggregate) {
    boolean marked = Scala.list(aggregate.groupingExpressions()).stream()
        .map(GroupedTimes::bare)
        .anyMatch(e -> e instanceof Attribute a && Rowtime.isWatermarked(a));
    return marked ? null : firstUnmarked(aggregate);
  }

  private static Attribute firstUnmarked(Aggregate aggregate) {
    return Scala.list(aggregate.groupingExpressions()).stream()
        .map(GroupedTimes::bare)
        .filter(e -> e instanceof Attribute a && WindowBounds.isWindow(a) && !Rowtime.isWatermarked(a))
        .map(e -> (Attribute) e)
        .findFirst()
        .orElse(null);
  }

  /** The node that computes the window; null if another operator is in between. */
  private static LogicalPlan maker(Attribute window, LogicalPlan plan) {
    boolean passes =
        plan instanceof Project || plan instanceof Filter || plan instanceof Expand || plan instanceof PipeOperator;
    if (!passes) {
      return null;
    }
    boolean makes = !onlyChild(plan).outputSet().contains(window);
    return makes ? plan : maker(window, onlyChild(plan));
  }

  private static LogicalPlan onlyChild(LogicalPlan plan) {
    return plan.children().apply(0);
  }

  /** The expression of which the window is computed; null if there is none, or more than one. */
  private static Expression time(Attribute window, LogicalPlan maker) {
    List<Expression> times =
        Scala.list(maker.expressions()).stream()
            .filter(e -> maker instanceof Expand || e instanceof Alias a && a.exprId().equals(window.exprId()))
            .flatMap(e -> WindowBounds.times(e).stream())
            .map(conversion -> conversion.child())
            .toList();
    // The first is always the window's start. The end of a session is computed from the time and the gap.
    boolean one = !times.isEmpty() && times.stream().allMatch(t -> t.exists(times.get(0)::semanticEquals));
    return one ? times.get(0) : null;
  }

  /** The maker above a column with the time, which has the automatic node. */
  private static LogicalPlan watched(Attribute window, Expression time, LogicalPlan maker) {
    Alias column = GroupedTimes.named(time);
    LogicalPlan below = GroupedTimes.above(column, onlyChild(maker));
    Attribute watched = GroupedTimes.marked(below, column);
    LogicalPlan made = AutoWatermark.with(maker, List.of(below));
    LogicalPlan replaced = expressions(made, e -> e.semanticEquals(time) ? watched : e);
    return marking(replaced, window, watched.metadata());
  }

  private static LogicalPlan expressions(LogicalPlan plan, UnaryOperator<Expression> rewriting) {
    return plan.transformExpressionsDown(Scala.rewriting(rewriting));
  }

  private static LogicalPlan marking(LogicalPlan maker, Attribute window, Metadata mark) {
    Metadata marked =
        new MetadataBuilder()
            .withMetadata(window.metadata())
            .putLong(EventTimeWatermark.delayKey(), mark.getLong(EventTimeWatermark.delayKey()))
            .build();
    return expressions(maker, e -> isOf(window, e) ? marked((NamedExpression) e, marked) : e);
  }

  private static boolean isOf(Attribute window, Expression e) {
    return e instanceof NamedExpression named && named.exprId().equals(window.exprId());
  }

  private static Expression marked(NamedExpression window, Metadata mark) {
    return window instanceof Alias alias
        ? new Alias(
            alias.child(), alias.name(), alias.exprId(), alias.qualifier(), Option.apply(mark),
            alias.nonInheritableMetadataKeys())
        : (Expression) ((Attribute) window).withMetadata(mark);
  }

  private static LogicalPlan rewritten(LogicalPlan node, LogicalPlan maker, LogicalPlan by) {
    return node == maker ? by : AutoWatermark.with(node, List.of(rewritten(onlyChild(node), maker, by)));
  }
}

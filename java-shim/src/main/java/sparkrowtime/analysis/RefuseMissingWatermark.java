package sparkrowtime.analysis;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses an aggregation in append mode that does not group by a time with a watermark: no group is ever
 * complete. Spark refuses it, too, but does not name the expression.
 */
final class RefuseMissingWatermark {
  private RefuseMissingWatermark() {}

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(node -> checkNode(node, plan)));
  }

  private static void checkNode(LogicalPlan node, LogicalPlan plan) {
    List<? extends Expression> groups = groups(node);
    if (groups == null || groups.stream().anyMatch(e -> e instanceof Attribute a && Rowtime.isWatermarked(a))) {
      return;
    }
    throw new IllegalArgumentException(
        "An aggregation without watermark is never complete, so append mode would give no results: it groups by "
            + shown(groups, plan) + ", and no bound is known for any of these. Group by window(rowtime, ...),"
            + " rowtime, or an expression that keeps the order of time (rowtime + INTERVAL ..., date_trunc; see"
            + " docs/semantics.md); keep the column rowtime, or the window, in every SELECT in between; or call"
            + " withWatermark(<column>, <delay>) on the time column before the aggregation.");
  }

  /** The grouping expressions of a node; DISTINCT and EXCEPT group by all columns. Null if it is no aggregation of a stream. */
  private static List<? extends Expression> groups(LogicalPlan node) {
    if (!node.isStreaming()) {
      return null;
    } else if (node instanceof Aggregate aggregate) {
      return Scala.list(aggregate.groupingExpressions());
    }
    return PassingOperators.isDistinct(node) ? Scala.list(node.output()) : null;
  }

  private static String shown(List<? extends Expression> groups, LogicalPlan plan) {
    return groups.isEmpty() ? "nothing" : groups.stream().map(e -> shown(e, plan)).collect(Collectors.joining(", "));
  }

  /** The expression as SQL, with what the user wrote if Spark has replaced that by a column. */
  private static String shown(Expression e, LogicalPlan plan) {
    String written = e instanceof Attribute a ? Origin.expression(a, plan) : null;
    return written == null ? e.sql() : e.sql() + " (" + written + ")";
  }
}

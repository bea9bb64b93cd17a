package sparkrowtime.analysis;

import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CurrentDate;
import org.apache.spark.sql.catalyst.expressions.CurrentTimestamp;
import org.apache.spark.sql.catalyst.expressions.DateAdd;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Now;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DatetimeType;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Makes {@code current_timestamp()} of {@code now()}, and of the texts {@code now}, {@code today}, {@code tomorrow} and {@code
 * yesterday} that are cast to a time. Spark gives a batch one current time, which is no constant to its optimizer, so that a
 * condition stays where it is written; but it overlooks these. They are constants of each batch's plan. The optimizer moves a
 * condition with them to below an aggregation, or into a join, and rows are left out, or freed, by the time of one batch.
 *
 * <p>Law: all ways to write the current time give the same results. {@code current_time()}, for which Spark has no time of the
 * batch, is refused where rows are kept.
 */
final class CurrentTimes {
  private CurrentTimes() {}

  static LogicalPlan of(LogicalPlan plan) {
    return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
        Scala.call(() -> plan.transformAllExpressionsWithSubqueries(Scala.rewriting(CurrentTimes::ofBatch))));
  }

  static void check(LogicalPlan plan) {
    if (plan.exists(Scala.function(StatefulNodes::keepsRows))) {
      plan.foreach(Scala.each(node -> Scala.list(node.expressions()).forEach(CurrentTimes::checkParts)));
    }
  }

  private static void checkParts(Expression e) {
    e.foreach(Scala.each(CurrentTimes::checkPart));
  }

  private static Expression ofBatch(Expression part) {
    if (part instanceof Now) {
      return new CurrentTimestamp();
    } else if (part instanceof Cast cast && cast.dataType() instanceof DatetimeType && cast.child() instanceof Literal text) {
      Expression current = current(String.valueOf(text.value()), cast);
      return current == null ? cast : cast.withNewChildren(Scala.seq(List.of(current)));
    }
    return part;
  }

  /** What a text stands for; null if it says its time itself. */
  private static Expression current(String text, Cast cast) {
    CurrentDate today = new CurrentDate(cast.timeZoneId());
    return switch (text.strip().toLowerCase(Locale.ROOT)) {
      case "now" -> new CurrentTimestamp();
      case "today" -> today;
      case "tomorrow" -> new DateAdd(today, new Literal(1, DataTypes.IntegerType));
      case "yesterday" -> new DateAdd(today, new Literal(-1, DataTypes.IntegerType));
      default -> null;
    };
  }

  /** Spark 4.0 has no such class. */
  private static void checkPart(Object part) {
    if (part instanceof Expression e && e.getClass().getSimpleName().equals("CurrentTime")) {
      throw new IllegalArgumentException(
          e.sql() + " is another time in each batch, and a constant to Spark's optimizer, which moves conditions with it to where"
              + " rows are left out by the time of one batch. Use current_timestamp() instead.");
    }
  }
}

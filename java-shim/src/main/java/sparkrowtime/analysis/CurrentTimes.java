package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.CurrentTimestamp;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Now;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/**
 * Makes {@code current_timestamp()} of {@code now()}. Spark gives a batch one current time, which is no constant to its
 * optimizer, so that a condition stays where it is written; but it overlooks {@code now()}. That is a constant of each batch's
 * plan. The optimizer moves a condition with it to below an aggregation, or into a join, and rows are left out, or freed, by
 * the time of one batch.
 *
 * <p>Law: both functions give the same results.
 */
final class CurrentTimes {
  private CurrentTimes() {}

  static LogicalPlan of(LogicalPlan plan) {
    return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(
        Scala.call(() -> plan.transformAllExpressionsWithSubqueries(Scala.rewriting(CurrentTimes::ofBatch))));
  }

  private static Expression ofBatch(Expression part) {
    return part instanceof Now ? new CurrentTimestamp() : part;
  }
}

package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.OutputMode;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.support.ShimMismatch;

/**
 * The checks of a streaming query that reads rowtime streams, or tables with bounds. Spark analyzes the statement that starts a
 * query in the user's thread, inside {@code start()}, and applies the rules for hints before its own check
 * of streaming operations. So {@code start()} raises these errors, and raises them before Spark's, which
 * do not name the expression.
 *
 * <p>Law: whatever can be refused by the plan and the output mode is refused here, before the first batch.
 */
public final class QueryStart extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    ShimMismatch.guarded(
        () -> {
          if (plan instanceof WriteToStreamStatement query && plan.exists(RowtimeReads::isBounded)) {
            RefuseDamagedCheckpoint.check(query);
            RefuseOtherModes.check(query);
            check(query.inputQuery(), query.outputMode());
          }
        });
    return plan;
  }

  private static void check(LogicalPlan plan, OutputMode mode) {
    RefuseSettings.check(SQLConf.get());
    RefuseTopics.check(plan);
    RefuseTables.check(plan);
    RefuseGroupFunctions.check(plan);
    RefuseTableFunctions.check(plan);
    RefuseTableDifference.check(plan);
    RefuseRowNumbers.check(plan);
    RefuseSubqueries.check(plan);
    RefuseMovingConditions.check(plan);
    RefuseSecondWatermark.check(plan);
    if (mode.equals(OutputMode.Append())) {
      RefuseLostTotals.check(plan);
      RefuseMissingWatermark.check(plan);
      RefuseNullGroups.check(plan);
    }
    RefuseUnknownTimes.check(plan);
    WatermarkAdvice.give(plan);
  }
}

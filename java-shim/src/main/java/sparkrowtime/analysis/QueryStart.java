package sparkrowtime.analysis;

import java.util.List;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.OutputMode;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The checks of a streaming query that reads rowtime streams, or tables with bounds. Spark analyzes the statement that starts a
 * query in the user's thread, inside {@code start()}, and applies the rules for hints before its own check
 * of streaming operations. So {@code start()} raises these errors, and raises them before Spark's, which
 * do not name the expression.
 *
 * <p>Law: whatever can be refused by the plan and the output mode is refused here, before the first batch. Nothing else
 * changes, but the state of an ASOF JOIN keeps only the columns that the query needs, a table that is joined with itself is
 * read once, and {@code now()} is the current time of the batch.
 */
public final class QueryStart extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return ShimMismatch.guarded(
        () -> plan instanceof WriteToStreamStatement query && plan.exists(RowtimeReads::isBounded) ? started(query) : plan);
  }

  private static LogicalPlan started(WriteToStreamStatement query) {
    RefuseDamagedCheckpoint.check(query);
    RefuseOtherModes.check(query);
    LogicalPlan input = CurrentTimes.of(query.inputQuery());
    check(input, query.outputMode());
    return query.withNewChildren(Scala.seq(List.of(OneRead.of(AsOfColumns.needed(input)))));
  }

  private static void check(LogicalPlan plan, OutputMode mode) {
    RefuseSettings.check(SQLConf.get());
    RefuseTopics.check(plan);
    RefuseTables.check(plan);
    eachNode(plan, RefuseGroupFunctions::check);
    eachNode(plan, RefuseTableFunctions::check);
    eachNode(plan, RefuseTableDifference::check);
    eachNode(plan, RefuseRowNumbers::check);
    RefuseSubqueries.check(plan);
    CurrentTimes.check(plan);
    eachNode(plan, RefuseMovingConditions::check);
    eachNode(plan, RefuseSecondWatermark::check);
    RefuseStructWatermark.check(plan);
    RefuseDedupTimes.check(plan);
    if (mode.equals(OutputMode.Append())) {
      eachNode(plan, RefuseLostTotals::check);
      RefuseMissingWatermark.check(plan);
      RefuseNullGroups.check(plan);
    }
    RefuseUnknownTimes.check(plan);
    WatermarkAdvice.give(plan);
  }

  private static void eachNode(LogicalPlan plan, Consumer<LogicalPlan> check) {
    plan.foreach(Scala.each(check));
  }
}

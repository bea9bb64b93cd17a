package sparkrowtime.analysis;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.Table;
import sparkrowtime.source.BoundedTable;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The resolution rule: gives each streaming relation of a rowtime source a bounded table and the
 * automatic watermark. Spark applies it to every plan it analyzes, in the user's thread.
 *
 * <p>Law: idempotent; left as they are: plans without a rowtime stream, streams read with option
 * bounds=ignore, and the plans of batches, which Spark analyzes again.
 */
public final class RowtimeRelations extends Rule<LogicalPlan> {
  private final SparkSession session;

  public RowtimeRelations(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return ShimMismatch.guarded(() -> bounded(plan.exists(TableOptions::concern) ? told(plan) : plan));
  }

  /** The session has its catalog when the first plan is analyzed, not yet when the rule is made. */
  private LogicalPlan told(LogicalPlan plan) {
    SessionCatalog tables = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
    return plan.resolveOperatorsUp(Scala.rewriting(node -> TableOptions.given(node, tables)));
  }

  private static LogicalPlan bounded(LogicalPlan plan) {
    if (!plan.exists(RowtimeRelations::isRowtime)) {
      return plan;
    }
    LogicalPlan bounded = plan.resolveOperatorsUp(Scala.rewriting(RowtimeRelations::rewrite));
    LogicalPlan grouped =
        GroupedTimes.isAwaited(plan)
            ? bounded
            : bounded.resolveOperatorsUp(Scala.rewriting(RowtimeRelations::grouped));
    return grouped == bounded ? bounded : Marks.refreshed(grouped);
  }

  private static LogicalPlan grouped(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      LogicalPlan windowed = WindowedTimes.asColumn(aggregate);
      return windowed == aggregate ? GroupedTimes.asColumn(aggregate) : windowed;
    }
    return node;
  }

  /** A relation as the user has it; in the plan of a batch Spark has put others in its place. */
  public static boolean isRowtime(Object node) {
    return node instanceof StreamingRelationV2 relation
        && relation.sourceName().equalsIgnoreCase(Rowtime.SOURCE)
        && !"ignore".equalsIgnoreCase(relation.extraOptions().get("bounds"));
  }

  private static LogicalPlan rewrite(LogicalPlan node) {
    if (node instanceof StreamingRelationV2 relation) {
      boolean isNew = isRowtime(relation) && !(relation.table() instanceof BoundedTable);
      return isNew ? AutoWatermark.above(bounded(relation)) : relation;
    } else if (node instanceof EventTimeWatermark watermark) {
      return AutoWatermark.replacedBy(watermark);
    } else if (node instanceof Project project) {
      return AutoWatermark.movedUp(project);
    } else if (node instanceof Union union) {
      return AutoWatermark.notBesideOrdinary(union);
    }
    return node;
  }

  private static StreamingRelationV2 bounded(StreamingRelationV2 relation) {
    return Scala.copy(relation, Table.class, BoundedTable.over(relation.table()));
  }
}

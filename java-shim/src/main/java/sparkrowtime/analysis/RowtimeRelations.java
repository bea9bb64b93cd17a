package sparkrowtime.analysis;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.Table;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.InTable;

/**
 * The resolution rule that gives each streaming relation of a rowtime source a bounded table and the
 * automatic watermark. Spark applies it to every plan that it analyzes, in the user's thread. The late rows of a
 * stream (option view=rejected) get the table alone: they have no watermark, and their only bound is the end of time.
 * The relation of a Delta or Iceberg table below {@code punctuate} gets a bounded source ({@link TableReads}).
 *
 * <p>Law: the rule is idempotent. It does not change plans without a rowtime stream, streams that are read
 * with option bounds=ignore or bounds=markers, or as a table, and the plans of batches, which Spark analyzes again.
 */
public final class RowtimeRelations extends Rule<LogicalPlan> {
  private final SparkSession session;
  private final BoundedSources sources;

  public RowtimeRelations(SparkSession session, BoundedSources sources) {
    this.session = session;
    this.sources = sources;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return ShimMismatch.guarded(() -> bounded(alone(plan.exists(TableOptions::concern) ? withTableOptions(plan) : plan)));
  }

  /** The session has its catalog only when the first plan is analyzed, not when the rule is created. */
  private LogicalPlan withTableOptions(LogicalPlan plan) {
    SessionCatalog tables = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().catalog();
    return plan.resolveOperatorsUp(Scala.rewriting(node -> TableOptions.given(node, tables)));
  }

  private static LogicalPlan alone(LogicalPlan plan) {
    return plan.exists(TableReads::isJoined)
        ? plan.resolveOperatorsUp(Scala.rewriting(node -> TableReads.isJoined(node) ? TableReads.alone((Filter) node) : node))
        : plan;
  }

  private LogicalPlan bounded(LogicalPlan read) {
    LogicalPlan plan = read.exists(this::isNewOfLateRows)
        ? read.resolveOperatorsUp(Scala.rewriting(node -> isNewOfLateRows(node) ? bounded((StreamingRelationV2) node) : node))
        : read;
    if (!plan.exists(RowtimeReads::isBounded) || plan.exists(RowtimeReads::isNaming)) {
      return plan;
    }
    LogicalPlan bounded = Marks.ofNames(plan.resolveOperatorsUp(Scala.rewriting(this::rewrite)));
    LogicalPlan grouped =
        GroupedTimes.isAwaited(plan)
            ? bounded
            : bounded.resolveOperatorsUp(Scala.rewriting(RowtimeRelations::grouped));
    return grouped == plan ? plan : Marks.refreshed(grouped);
  }

  private static LogicalPlan grouped(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      LogicalPlan windowed = WindowedTimes.asColumn(aggregate);
      return windowed == aggregate ? GroupedTimes.asColumn(aggregate) : windowed;
    }
    return node;
  }

  private boolean isNewOfLateRows(Object node) {
    return RowtimeReads.isOfLateRows(node) && isNew((StreamingRelationV2) node);
  }

  private boolean isNew(StreamingRelationV2 relation) {
    return sources.ofRowtime(relation.table()) != relation.table();
  }

  private LogicalPlan rewrite(LogicalPlan node) {
    if (node instanceof StreamingRelationV2 relation) {
      return RowtimeReads.isRowtime(relation) && isNew(relation) ? AutoWatermark.above(bounded(relation)) : relation;
    } else if (node instanceof EventTimeWatermark watermark) {
      return AutoWatermark.replacedBy(watermark);
    } else if (InTable.of(node) != null) {
      return TableReads.bounded((Filter) node, sources);
    } else if (node instanceof Project project) {
      return AutoWatermark.movedUp(project);
    } else if (node instanceof Join join) {
      return JoinConditions.compared(join);
    } else if (node instanceof Union union) {
      LogicalPlan bounded = TopicUnion.rewritten(union);
      return bounded != union ? bounded : AutoWatermark.notWithOrdinary(union);
    }
    return node;
  }

  private StreamingRelationV2 bounded(StreamingRelationV2 relation) {
    return Scala.copy(relation, Table.class, sources.ofRowtime(relation.table()));
  }
}

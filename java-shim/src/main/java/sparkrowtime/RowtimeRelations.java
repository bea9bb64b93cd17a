package sparkrowtime;

import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * The resolution rule: gives each streaming relation of a rowtime source a bounded table and the
 * automatic watermark. Spark applies it to every plan it analyzes, in the user's thread.
 *
 * <p>Law: idempotent; left as they are: plans without a rowtime stream, streams read with option
 * bounds=ignore, and the plans of batches, which Spark analyzes again.
 */
final class RowtimeRelations extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.exists(RowtimeRelations::isRowtime)
        ? plan.resolveOperatorsUp(Scala.rewriting(RowtimeRelations::rewrite))
        : plan;
  }

  /** A relation as the user has it; in the plan of a batch Spark has put others in its place. */
  private static boolean isRowtime(Object node) {
    return node instanceof StreamingRelationV2 relation
        && relation.sourceName().equals(Rowtime.SOURCE)
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

  /** The same relation with another table; the number of its fields differs between versions. */
  private static StreamingRelationV2 bounded(StreamingRelationV2 relation) {
    Object[] fields = new Object[relation.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = relation.productElement(i);
      fields[i] = field instanceof Table table ? BoundedTable.over(table) : field;
    }
    return (StreamingRelationV2) relation.makeCopy(fields);
  }
}

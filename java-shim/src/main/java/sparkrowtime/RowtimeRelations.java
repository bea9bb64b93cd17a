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
 * <p>Law: idempotent; plans without a rowtime stream are left as they are.
 */
final class RowtimeRelations extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(Scala.rewriting(RowtimeRelations::rewrite));
  }

  private static LogicalPlan rewrite(LogicalPlan node) {
    if (node instanceof StreamingRelationV2 relation) {
      return isNew(relation) ? AutoWatermark.above(bounded(relation)) : relation;
    } else if (node instanceof EventTimeWatermark watermark) {
      return AutoWatermark.replacedBy(watermark);
    } else if (node instanceof Project project) {
      return AutoWatermark.movedUp(project);
    } else if (node instanceof Union union) {
      return AutoWatermark.notBesideOrdinary(union);
    }
    return node;
  }

  private static boolean isNew(StreamingRelationV2 relation) {
    return relation.sourceName().equals(Rowtime.SOURCE)
        && !(relation.table() instanceof BoundedTable)
        && !"ignore".equalsIgnoreCase(relation.extraOptions().get("bounds"));
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

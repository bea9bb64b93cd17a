package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.CoGroup;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapCoGroupsInArrow;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapCoGroupsInPandas;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInArrow;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandas;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInR;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInRWithArrow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapGroups;

/**
 * Refuses functions of a whole group without state (applyInPandas, applyInArrow, cogroup, mapGroups). On a
 * stream, Spark calls such a function once in each micro-batch with the rows of that batch. So its results
 * depend on where a batch ends, and thereby on the bounds.
 */
final class RefuseGroupFunctions {
  private RefuseGroupFunctions() {}

  static void check(LogicalPlan node) {
    if (node.isStreaming() && isOfGroups(node)) {
      throw new IllegalArgumentException(
          node.nodeName() + " calls its function with the rows that a group has in one micro-batch, not with all rows"
              + " of the group, so its results would depend on where batches end: " + node.simpleString(20)
              + ". Use groupBy(...).transformWithStateInPandas, which keeps rows until they are complete; an"
              + " aggregation by window or rowtime; spark_rowtime.operators; mapInPandas, if rows are independent;"
              + " or foreachBatch, if the rows of one batch are what you want.");
    }
  }

  private static boolean isOfGroups(LogicalPlan node) {
    return node instanceof FlatMapGroupsInPandas
        || node instanceof FlatMapGroupsInArrow
        || node instanceof FlatMapCoGroupsInPandas
        || node instanceof FlatMapCoGroupsInArrow
        || node instanceof FlatMapGroupsInR
        || node instanceof FlatMapGroupsInRWithArrow
        || node instanceof MapGroups
        || node instanceof CoGroup;
  }
}

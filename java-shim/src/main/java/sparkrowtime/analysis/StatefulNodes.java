package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.*;

/** Decides which nodes of an analyzed plan keep rows of a stream from one batch to the next. */
final class StatefulNodes {
  private StatefulNodes() {}

  static boolean keepsRows(Object node) {
    return node instanceof LogicalPlan plan && plan.isStreaming() && (isOfOneStream(plan) || isStreamJoin(plan));
  }

  private static boolean isOfOneStream(LogicalPlan node) {
    return node instanceof Aggregate
        || node instanceof Distinct
        || node instanceof Deduplicate
        || node instanceof DeduplicateWithinWatermark
        || node instanceof Intersect
        || node instanceof Except
        || node instanceof FlatMapGroupsWithState
        || node instanceof FlatMapGroupsInPandasWithState
        || node instanceof TransformWithState
        || node instanceof TransformWithStateInPySpark;
  }

  static boolean isStreamJoin(LogicalPlan node) {
    return node instanceof Join join && join.left().isStreaming() && join.right().isStreaming();
  }
}

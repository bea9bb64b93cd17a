package sparkrowtime.plan;

import org.apache.spark.sql.catalyst.plans.logical.*;
import sparkrowtime.support.Scala;

/** Decides which nodes of an analyzed plan keep rows of a stream from one batch to the next. */
public final class StatefulNodes {
  private StatefulNodes() {}

  public static boolean keepsRows(Object node) {
    return node instanceof LogicalPlan plan && plan.isStreaming() && (isOfOneStream(plan) || isStreamJoin(plan));
  }

  /** Whether a node keeps rows and outputs them in a later batch. A deduplication outputs a row at once, or never. */
  public static boolean holdsBack(LogicalPlan node) {
    return keepsRows(node) && !(node instanceof Deduplicate || node instanceof DeduplicateWithinWatermark);
  }

  /** Whether a node can output rows when no row of its input follows. A join without a watermark outputs a pair at once. */
  public static boolean outputsByItself(Object node) {
    return node instanceof LogicalPlan plan && holdsBack(plan) && !isStreamJoin(plan);
  }

  /** The stream that a transformWithState reads; null for other nodes. Its other input is a table, the initial state. */
  public static LogicalPlan input(LogicalPlan node) {
    LogicalPlan function = node instanceof SerializeFromObject objects ? objects.child() : node;
    return function instanceof TransformWithStateInPySpark || function instanceof TransformWithState
        ? Scala.list(function.children()).stream().filter(LogicalPlan::isStreaming).findFirst().orElse(null)
        : null;
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

  public static boolean isStreamJoin(Object node) {
    return node instanceof Join join && join.left().isStreaming() && join.right().isStreaming();
  }
}

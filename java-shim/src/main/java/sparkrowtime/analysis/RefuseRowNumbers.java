package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.DistributedSequenceID;
import org.apache.spark.sql.catalyst.plans.logical.AttachDistributedSequence;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/**
 * Refuses zipWithIndex on a stream. Spark numbers the rows of each micro-batch from 0 on, so the numbers depend on where
 * batches end.
 */
final class RefuseRowNumbers {
  private RefuseRowNumbers() {}

  static void check(LogicalPlan node) {
    if (node.isStreaming() && (node instanceof AttachDistributedSequence || isNumbering(node))) {
      throw new IllegalArgumentException(
          "zipWithIndex numbers the rows of each micro-batch from 0 on, so its numbers would depend on where batches end: "
              + node.simpleString(20) + ". Let the producer number its rows in a column; or number the rows of one batch"
              + " in foreachBatch, if that is what you want.");
    }
  }

  private static boolean isNumbering(LogicalPlan node) {
    return Scala.list(node.expressions()).stream()
        .anyMatch(e -> e.exists(Scala.function(DistributedSequenceID.class::isInstance)));
  }
}

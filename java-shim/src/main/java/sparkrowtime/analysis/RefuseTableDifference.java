package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Refuses EXCEPT ALL of a stream and a table. Spark makes it an aggregation over the union of both, and reads
 * the table again in each micro-batch. So each row of the table takes away one row of the stream for every
 * batch, and the results depend on where batches end. EXCEPT without ALL becomes a join, and is right.
 */
final class RefuseTableDifference {
  private RefuseTableDifference() {}

  static void check(LogicalPlan node) {
    if (node.isStreaming() && node instanceof Except except && except.isAll()) {
      throw new IllegalArgumentException(
          "EXCEPT ALL takes the rows of the table away from the stream again in each micro-batch, so its results"
              + " would depend on where batches end: " + node.simpleString(20) + ". Write EXCEPT, which also removes"
              + " duplicates, or LEFT ANTI JOIN, which keeps the duplicates of rows that are not in the table.");
    }
  }
}

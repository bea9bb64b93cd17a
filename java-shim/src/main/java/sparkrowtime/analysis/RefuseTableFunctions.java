package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.PythonUDTF;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LateralJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import sparkrowtime.support.Scala;

/**
 * Refuses a table function in Python that asks for all rows of a stream in one call ({@code TABLE(...) WITH SINGLE
 * PARTITION}). Spark makes that call once in each micro-batch, with the rows of that batch. So the results would depend
 * on where a batch ends. PARTITION BY is refused by Spark, which sorts for it.
 */
final class RefuseTableFunctions {
  private RefuseTableFunctions() {}

  static void check(LogicalPlan node) {
    if (node instanceof LateralJoin join && join.left().isStreaming() && isOnePartition(join.left())) {
      join.right().plan().foreach(Scala.each(RefuseTableFunctions::checkFunction));
    }
  }

  /** Spark's plan of the argument: one column with the row as a struct, above the exchange. */
  private static boolean isOnePartition(LogicalPlan argument) {
    return argument instanceof SubqueryAlias alias
        && alias.child() instanceof Project row
        && row.output().size() == 1
        && row.child() instanceof Repartition exchange
        && exchange.numPartitions() == 1;
  }

  private static void checkFunction(LogicalPlan node) {
    if (node instanceof Generate call && call.generator() instanceof PythonUDTF function) {
      throw new IllegalArgumentException(
          function.name() + "(TABLE(...) WITH SINGLE PARTITION) is called with the rows that a stream has in one"
              + " micro-batch, not with all rows of the stream, so its results would depend on where batches end."
              + " Leave out WITH SINGLE PARTITION, if rows are independent; use an aggregation by window or rowtime,"
              + " spark_rowtime.operators, groupBy(...).transformWithStateInPandas, which keeps rows until they are"
              + " complete; or foreachBatch, if the rows of one batch are what you want.");
    }
  }
}

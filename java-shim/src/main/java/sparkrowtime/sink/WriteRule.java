package sparkrowtime.sink;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2Exec;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/** A physical rule that replaces the write of a batch, in queries with bounds. */
abstract class WriteRule extends ColumnarRule {
  /** Whether the rule is about the sink of a write. */
  abstract boolean concerns(StreamingWrite write);

  /** What takes the place of the write of a batch. */
  abstract BatchWrite replaced(MicroBatchWrite batch, BoundedQuery query);

  @Override
  public final Rule<SparkPlan> preColumnarTransitions() {
    return new Rule<>() {
      @Override
      public SparkPlan apply(SparkPlan plan) {
        return ShimMismatch.guarded(() -> rewrite(plan));
      }
    };
  }

  private SparkPlan rewrite(SparkPlan plan) {
    if (!(plan instanceof WriteToDataSourceV2Exec write)
        || !(write.batchWrite() instanceof MicroBatchWrite batch)
        || !concerns(batch.writeSupport())) {
      return plan;
    }
    BoundedQuery query = BoundedQuery.ofThisThread();
    return query == null ? plan : Scala.copy(write, BatchWrite.class, replaced(batch, query));
  }
}

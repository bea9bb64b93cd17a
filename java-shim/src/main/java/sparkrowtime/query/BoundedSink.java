package sparkrowtime.query;

import java.util.Map;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import sparkrowtime.tables.CommitLog;

/** A sink of Spark whose commits can have properties. Used in the query's thread. */
interface BoundedSink {
  /** The sink of a query; null if its commits can have none. */
  static BoundedSink of(LogicalPlan plan) {
    if (plan instanceof WriteToMicroBatchDataSourceV1 write) {
      return DeltaSink.of(write);
    }
    return plan instanceof WriteToMicroBatchDataSource write ? IcebergSink.of(write) : null;
  }

  /** Why its options do not allow properties; null if they do. */
  String whyNot();

  /** The commits of the table that it writes. */
  CommitLog log(SparkSession session);

  /**
   * Gives properties to the commit of the batch that is planned.
   *
   * @param status what the query tells about the batch
   */
  void publish(Map<String, String> properties, String status);

  /** The properties for the commit of a batch, where the sink is given them only when it commits. */
  Map<String, String> asked(long batch);
}

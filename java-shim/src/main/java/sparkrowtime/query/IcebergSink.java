package sparkrowtime.query;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import sparkrowtime.support.ByName;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.CommitLog;
import sparkrowtime.tables.IcebergLog;

/**
 * Iceberg's sink. Spark makes a write for each batch before the bounds of the batch are known, and Iceberg takes the options of
 * a write then. So the commit is given the properties by {@link sparkrowtime.sink.TableCommits}.
 */
final class IcebergSink implements BoundedSink {
  private final Object table;
  private Map<String, String> published = Map.of();

  private IcebergSink(Object table) {
    this.table = table;
  }

  static IcebergSink of(WriteToMicroBatchDataSource write) {
    return IcebergLog.isOfSpark(write.table()) ? new IcebergSink(write.table()) : null;
  }

  @Override
  public String whyNot() {
    return ByName.call(table, "branch") == null ? null : "the table is written on a branch, which streams do not read";
  }

  @Override
  public CommitLog log(SparkSession session) {
    return IcebergLog.of(table);
  }

  @Override
  public void publish(Map<String, String> properties, String status) {
    Map<String, String> all = new HashMap<>(properties);
    all.put("rowtime.account", BriefStatus.of(status));
    published = Map.copyOf(all);
  }

  @Override
  public Map<String, String> asked(long batch) {
    if (!Long.toString(batch).equals(published.get("rowtime.batch"))) {
      throw new ShimMismatch("the bounds of batch " + batch + " to be those that were published last", null);
    }
    return published;
  }
}

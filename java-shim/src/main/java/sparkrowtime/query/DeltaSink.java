package sparkrowtime.query;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.support.ByName;
import sparkrowtime.tables.CommitLog;
import sparkrowtime.tables.DeltaLog;

/**
 * Delta's sink, which writes the metadata of a commit as the setting {@value #METADATA} has it when the batch is written.
 */
record DeltaSink(WriteToMicroBatchDataSourceV1 write) implements BoundedSink {
  private static final String METADATA = "spark.databricks.delta.commitInfo.userMetadata";
  private static final String SINK = "org.apache.spark.sql.delta.sources.DeltaSink";

  static DeltaSink of(WriteToMicroBatchDataSourceV1 write) {
    return ByName.is(write.sink(), SINK) ? new DeltaSink(write) : null;
  }

  @Override
  public String whyNot() {
    boolean isGiven =
        CollectionConverters.asJava(write.writeOptions()).keySet().stream().anyMatch("userMetadata"::equalsIgnoreCase);
    return isGiven ? "it is written as the option userMetadata. Leave that out" : null;
  }

  @Override
  public CommitLog log(SparkSession session) {
    Configuration hadoop = session.sessionState().newHadoopConfWithOptions(write.writeOptions());
    return new DeltaLog(new Path((Path) ByName.call(write.sink(), "path"), "_delta_log"), hadoop);
  }

  @Override
  public void publish(Map<String, String> properties, String status) {
    Map<String, String> all = new LinkedHashMap<>(properties);
    all.put("rowtime.account", status);
    SparkSession.active().conf().set(METADATA, OffsetJson.write(all));
  }

  @Override
  public Map<String, String> asked(long batch) {
    return Map.of();
  }
}

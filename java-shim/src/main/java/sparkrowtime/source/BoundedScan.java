package sparkrowtime.source;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Spark's scan of the Python source, whose stream is a {@link BoundedStream}. */
final class BoundedScan implements Scan {
  private final Scan scan;
  private final CaseInsensitiveStringMap options;

  BoundedScan(Scan scan, CaseInsensitiveStringMap options) {
    this.scan = scan;
    this.options = options;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return BoundedStream.over(
        scan.toMicroBatchStream(checkpointLocation), scan.readSchema(), options, checkpointLocation);
  }

  @Override
  public StructType readSchema() {
    return scan.readSchema();
  }

  @Override
  public String description() {
    return scan.description();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return scan.supportedCustomMetrics();
  }

  /** In columns where {@link sparkrowtime.read.NativeRead} can, in rows through Python; of one batch all are alike. */
  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.PARTITION_DEFINED;
  }
}

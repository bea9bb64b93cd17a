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

  /**
   * Each partition says whether it is read in columns, by {@link sparkrowtime.read.NativeRead}, or in
   * rows, through Python. All partitions of one batch are of the same kind.
   */
  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.PARTITION_DEFINED;
  }
}

package sparkrowtime.source;

import java.net.SocketTimeoutException;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Spark's scan of the Python source, whose stream is a {@link BoundedStream}. */
final class BoundedScan extends PassingScan {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** So many Python workers are started for a stream, which have 10 s each to come up: a busy machine may need more. */
  private static final int WORKERS = 6;

  private final CaseInsensitiveStringMap options;

  BoundedScan(Scan scan, CaseInsensitiveStringMap options) {
    super(scan);
    this.options = options;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    return BoundedStream.over(started(checkpointLocation, WORKERS), scan.readSchema(), options, checkpointLocation);
  }

  private MicroBatchStream started(String checkpointLocation, int workers) {
    try {
      return scan.toMicroBatchStream(checkpointLocation);
    } catch (Exception error) {
      if (workers == 1 || !(error.getCause() instanceof SocketTimeoutException)) {
        throw error;
      }
      LOG.warn("The Python worker of a stream did not come up in the time that Spark gives it; another one is started.");
      return started(checkpointLocation, workers - 1);
    }
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

package sparkrowtime.source;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sparkrowtime.tables.IcebergLog;
import sparkrowtime.tables.InTable;

/** Iceberg's scan of a table, whose stream has the bounds of its snapshots. */
final class IcebergScan extends PassingScan {
  /** With it the user says where in the table's history a query begins. */
  private static final String FROM = "stream-from-timestamp";

  private final IcebergLog log;
  private final InTable mark;
  private final CaseInsensitiveStringMap options;

  IcebergScan(Scan scan, IcebergLog log, InTable mark, CaseInsensitiveStringMap options) {
    super(scan);
    this.log = log;
    this.mark = mark;
    this.options = options;
  }

  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    return IcebergStream.over(scan.toMicroBatchStream(checkpoint), checkpoint, log, mark, !options.containsKey(FROM));
  }
}

package sparkrowtime.source;

import java.util.OptionalLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.AcceptsLatestSeenOffset;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.IcebergLog;
import sparkrowtime.tables.IcebergOffset;
import sparkrowtime.tables.InTable;

/**
 * Wraps Iceberg's stream, and tells the query which bound its offset has reached. All else is Iceberg's. Spark calls every
 * method in the query's thread: {@link #setLatestSeenOffset} at a restart, also before a batch that runs again.
 */
final class IcebergStream extends TableSource
    implements MicroBatchStream, SupportsTriggerAvailableNow, AcceptsLatestSeenOffset {
  private final MicroBatchStream stream;
  private final IcebergLog log;
  private final boolean fromBeginning;

  private IcebergStream(
      MicroBatchStream stream, String checkpoint, IcebergLog log, InTable mark, boolean fromBeginning) {
    super(log, checkpoint, mark);
    this.stream = stream;
    this.log = log;
    this.fromBeginning = fromBeginning;
  }

  /**
   * Refuses a table that is not the one of which the user has named the bounds.
   *
   * @param checkpoint the source's part of the checkpoint
   * @param fromBeginning whether a new query begins with the first snapshot of the table
   */
  static IcebergStream over(
      MicroBatchStream stream, String checkpoint, IcebergLog log, InTable mark, boolean fromBeginning) {
    if (!(stream instanceof SupportsTriggerAvailableNow)) {
      throw new ShimMismatch("Iceberg's stream with limits and Trigger.AvailableNow, not " + stream.getClass(), null);
    }
    mark.requireOf(log.table(), new Configuration(false));
    return new IcebergStream(stream, checkpoint, log, mark, fromBeginning);
  }

  /** Its source fails where a snapshot that was read is not one of the table any more. */
  @Override
  OptionalLong beginning() {
    return OptionalLong.empty();
  }

  @Override
  public long passed(String offset) {
    return log.passed(IcebergOffset.of(offset));
  }

  @Override
  public void setLatestSeenOffset(Offset offset) {
    ShimMismatch.guarded(
        () -> {
          BoundedQuery.running().install();
          log.refresh();
          log.requireFollows(IcebergOffset.of(offset.json()));
        });
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return next(start, from -> found(from, limit));
  }

  /** Iceberg looks for what is new. Of a table that was set back it says that a snapshot has no parent, or no such descendant. */
  private Offset found(Offset start, ReadLimit limit) {
    IcebergOffset read = IcebergOffset.of(start.json());
    if (fromBeginning && read.files() <= 0 && start.equals(stream.initialOffset())) {
      log.requireBeginning(read);
    }
    try {
      Offset end = ((SupportsTriggerAvailableNow) stream).latestOffset(start, limit);
      log.requireFollows(read);
      return end != null && isBehind(IcebergOffset.of(end.json()), read) ? start : end;
    } catch (RuntimeException e) {
      log.requireSound(read, e);
      throw e;
    }
  }

  /**
   * At a snapshot without files Iceberg says the number of files of the one before, and none when it looks again. Spark would run
   * one more batch, without news.
   */
  private static boolean isBehind(IcebergOffset end, IcebergOffset start) {
    return end.snapshot() == start.snapshot() && end.files() < start.files();
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return ((SupportsTriggerAvailableNow) stream).getDefaultReadLimit();
  }

  @Override
  public Offset reportLatestOffset() {
    return ((SupportsTriggerAvailableNow) stream).reportLatestOffset();
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    ((SupportsTriggerAvailableNow) stream).prepareForTriggerAvailableNow();
  }

  @Override
  public Offset latestOffset() {
    throw new ShimMismatch("latestOffset to be called with a start and a limit", null);
  }

  /** Spark calls it for a batch that runs again, too. */
  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ShimMismatch.guarded(() -> query(end));
    return stream.planInputPartitions(ofFormat(start), ofFormat(end));
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return stream.createReaderFactory();
  }

  @Override
  public Offset initialOffset() {
    return withFloor(stream.initialOffset(), null);
  }

  @Override
  Offset ofFormat(String json) {
    return stream.deserializeOffset(json);
  }

  @Override
  public void commit(Offset end) {
    stream.commit(ofFormat(end));
  }

  @Override
  public void stop() {
    stream.stop();
  }

  @Override
  public String toString() {
    return log.table().toString();
  }
}

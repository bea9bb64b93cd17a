package sparkrowtime.source;

import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.AcceptsLatestSeenOffset;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.python.Latest;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.Questions;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.query.EventWait;
import sparkrowtime.read.NativeRead;
import sparkrowtime.support.ShimMismatch;

/**
 * Wraps Spark's stream of the Python source, and tells the query how far the stream's bound has come.
 * Spark calls every method in the query's thread: {@link #setLatestSeenOffset} at a restart, then
 * {@link #latestOffset(Offset, ReadLimit)}, {@link #planInputPartitions} and {@link #commit} for each
 * batch. It does not call latestOffset for a batch that is run again after a crash.
 *
 * <p>What Spark's stream of a Python source can do differs between versions of Spark: before 4.2 it has no limits, no
 * Trigger.AvailableNow and no metrics. Here all of them are {@link Questions}, so they are there in each version.
 *
 * <p>Law: offsets pass through as the Python side wrote them.
 */
final class BoundedStream extends RowtimeStream
    implements SupportsTriggerAvailableNow, AcceptsLatestSeenOffset, ReportsSourceMetrics {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** The options have the limits, and only the Python side reads them. */
  private static final ReadLimit OF_OPTIONS = ReadLimit.maxRows(Long.MAX_VALUE);

  private final MicroBatchStream stream;
  private final NativeRead read;
  private String told;
  private Map<String, String> metrics = Map.of();

  private BoundedStream(
      MicroBatchStream stream, Questions questions, StructType schema, CaseInsensitiveStringMap options) {
    super(questions, options);
    this.stream = stream;
    this.read = new NativeRead(stream, questions, schema);
  }

  /**
   * @param location the source's part of the checkpoint, which names this reader in the stream's retention
   */
  static BoundedStream over(
      MicroBatchStream stream, StructType schema, CaseInsensitiveStringMap options, String location) {
    return new BoundedStream(stream, new Questions(stream, location, options.get(WATCHED)), schema, options);
  }

  @Override
  public void setLatestSeenOffset(Offset offset) {
    OffsetJson.requireOurs(offset.json());
    ShimMismatch.guarded(() -> BoundedQuery.running().install());
  }

  /** Spark asks the sources in the order of the plan, so the ends of topics beside this stream are taken after this. */
  @Override
  public void prepareForTriggerAvailableNow() {
    while (!questions().target()) {
      if (Thread.currentThread().isInterrupted()) {
        throw new UncheckedIOException(new InterruptedIOException("The query is stopped."));
      }
    }
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return ShimMismatch.guarded(
        () -> {
          BoundedQuery query = BoundedQuery.running();
          query.reads(this, start);
          Offset end = next(query, start, limit instanceof ReadAllAvailable);
          query.reached(this, end);
          return end;
        });
  }

  /** The end of the next batch; {@code start} if no news have come while the query waited for some. */
  private Offset next(BoundedQuery query, Offset start, boolean unlimited) {
    EventWait wait = query.eventWait();
    wait.begin(this);
    Offset end = questions().next(start, unlimited, untold(query.status()));
    while (start.equals(end) && wait.heard(this, seconds -> questions().news(seconds, wait.others(this)))) {
      end = questions().next(start, unlimited, null);
    }
    return end;
  }

  /** The query's status; null if the Python side has been told it. */
  private String untold(String status) {
    if (status.equals(told)) {
      return null;
    }
    told = status;
    return status;
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return OF_OPTIONS;
  }

  @Override
  public Offset reportLatestOffset() {
    Latest latest = questions().latest();
    metrics = latest.metrics();
    return latest.offset();
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    if (unionId() == null) {
      return metrics;
    }
    Map<String, String> all = new LinkedHashMap<>(metrics);
    all.put("rowsLate", Integer.toString(late()));
    return all;
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return read.partitions(start, end);
  }

  @Override
  public Offset initialOffset() {
    return stream.initialOffset();
  }

  /** Spark asks for the end with a limit. */
  @Override
  public Offset latestOffset() {
    throw new ShimMismatch("latestOffset to be called with a start and a limit", null);
  }

  @Override
  public Offset deserializeOffset(String json) {
    OffsetJson.requireOurs(json);
    return stream.deserializeOffset(json);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return read.readers();
  }

  @Override
  public void commit(Offset end) {
    questions().commit(end, BoundedQuery.running().committedTopic(this));
  }

  /**
   * Spark commits a batch to the source only when it makes the next batch. At the end of a query there
   * is no next batch, so the last one is committed here; otherwise the stream would keep its rows for
   * this query.
   */
  @Override
  public void stop() {
    try {
      BoundedQuery query = BoundedQuery.ofThisThread();
      if (query != null) {
        ended(query);
        query.close();
      }
    } finally {
      stream.stop();
    }
  }

  /** Commits the last batch, and records with which error the query has ended. The Python process may have ended before. */
  private void ended(BoundedQuery query) {
    try {
      Offset logged = query.committed(this);
      if (logged != null) {
        // Before the first batch of a run it is still as the log has it, which Spark's stream does not take.
        questions().commit(stream.deserializeOffset(logged.json()), query.committedTopic(this));
      }
      questions().ended(query.status(), query.error());
    } catch (Exception e) {
      LOG.debug("The end of the query could not be recorded in its source.", e);
    }
  }

  @Override
  public String toString() {
    return "rowtime[" + stream + "]";
  }
}

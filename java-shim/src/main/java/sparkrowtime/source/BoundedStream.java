package sparkrowtime.source;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.AcceptsLatestSeenOffset;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.read.NativeRead;
import sparkrowtime.support.ShimMismatch;

/**
 * Spark's stream of the Python source, which in addition tells the query how far its bound has come.
 * Spark calls every method in the query's thread: at a restart {@link #setLatestSeenOffset}, then
 * for each batch {@link #latestOffset(Offset, ReadLimit)}, {@link #planInputPartitions}, {@link
 * #commit}; a batch that is run again after a crash has no latestOffset.
 *
 * <p>Law: offsets pass through as the Python side wrote them; only the copies handed to the Python
 * side carry the handshake.
 */
public class BoundedStream
    implements MicroBatchStream,
        SupportsAdmissionControl,
        AcceptsLatestSeenOffset,
        ReportsSourceMetrics {
  private static final int MOST_ANSWERS = 8;

  private final SupportsAdmissionControl admission;
  private final MicroBatchStream stream;
  private final NativeRead read;
  private final boolean speaks;
  private final String location;
  private Map<String, String> metrics = Map.of();
  private final Map<String, Long> answers = new HashMap<>();

  private BoundedStream(
      MicroBatchStream stream, StructType schema, boolean speaks, String location) {
    this.stream = stream;
    this.read = new NativeRead(stream, schema);
    this.admission = (SupportsAdmissionControl) stream;
    this.speaks = speaks;
    this.location = location;
  }

  /** {@code location}: of the source's part of the checkpoint, its name in the stream's retention. */
  static BoundedStream over(
      MicroBatchStream stream,
      StructType schema,
      CaseInsensitiveStringMap options,
      String location) {
    boolean speaks = options.getBoolean("punctuate", false);
    if (stream instanceof SupportsTriggerAvailableNow) {
      return new AvailableNow(stream, schema, speaks, location);
    }
    if (stream instanceof SupportsAdmissionControl) {
      return new BoundedStream(stream, schema, speaks, location);
    }
    throw new ShimMismatch("a Python stream with admission control, not " + stream.getClass(), null);
  }

  /** Option punctuate: this stream's bound speaks for the ordinary sources that it is mixed with. */
  public boolean speaks() {
    return speaks;
  }

  @Override
  public void setLatestSeenOffset(Offset offset) {
    ShimMismatch.guarded(() -> BoundedQuery.running().install());
    if (stream instanceof AcceptsLatestSeenOffset accepts) {
      accepts.setLatestSeenOffset(offset);
    }
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    return ShimMismatch.guarded(
        () -> {
          BoundedQuery query = BoundedQuery.running();
          Offset from = withShim(start, query.isAlone());
          Offset end = Planner.answer(() -> admission.latestOffset(from, limit));
          query.reached(this, end == null ? start : end);
          return end;
        });
  }

  /**
   * The least rowtime at or above {@code from} in what was sent up to {@code end}; {@link
   * Bound#UNLIMITED} for none. What was sent up to an offset never changes: the last answers are kept.
   */
  public long leastSent(Offset end, long from) {
    String question = OffsetJson.leastSent(end.json(), from);
    if (answers.size() > MOST_ANSWERS) {
      answers.clear();
    }
    return answers.computeIfAbsent(question, q -> OffsetJson.least(Planner.answer(() -> ask(stream, q)).json()));
  }

  /** A question to the Python side: a start offset that no log ever sees. */
  public static Offset ask(MicroBatchStream stream, String question) {
    return ((SupportsAdmissionControl) stream)
        .latestOffset(stream.deserializeOffset(question), ReadLimit.allAvailable());
  }

  @Override
  public Offset reportLatestOffset() {
    Offset latest = Planner.answer(admission::reportLatestOffset);
    if (latest == null) {
      return null;
    }
    metrics = OffsetJson.metrics(latest.json());
    return stream.deserializeOffset(OffsetJson.without(latest.json(), "metrics"));
  }

  @Override
  public Map<String, String> metrics(Optional<Offset> latestConsumed) {
    return metrics;
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return Planner.answer(() -> read.partitions(withShim(start, false), end));
  }

  private Offset withShim(Offset offset, boolean alone) {
    return stream.deserializeOffset(OffsetJson.withShim(offset.json(), location, alone));
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return admission.getDefaultReadLimit();
  }

  @Override
  public Offset initialOffset() {
    return stream.initialOffset();
  }

  @Override
  public Offset latestOffset() {
    return stream.latestOffset();
  }

  @Override
  public Offset deserializeOffset(String json) {
    return stream.deserializeOffset(json);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return read.readers();
  }

  @Override
  public void commit(Offset end) {
    stream.commit(end);
  }

  /**
   * Spark reports a batch as done for good only when it makes the next one. At the end of a query
   * there is none, and the stream would keep the last batch's rows for this query.
   */
  @Override
  public void stop() {
    try {
      BoundedQuery query = BoundedQuery.ofThisThread();
      Offset done = query == null ? null : query.committed(this);
      if (done != null) {
        stream.commit(done);
      }
    } finally {
      stream.stop();
    }
  }

  @Override
  public String toString() {
    return "rowtime[" + stream + "]";
  }

  /** The same for a Python stream that knows Trigger.AvailableNow. */
  private static final class AvailableNow extends BoundedStream
      implements SupportsTriggerAvailableNow {
    private final SupportsTriggerAvailableNow available;

    AvailableNow(
        MicroBatchStream stream, StructType schema, boolean speaks, String location) {
      super(stream, schema, speaks, location);
      this.available = (SupportsTriggerAvailableNow) stream;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
      available.prepareForTriggerAvailableNow();
    }
  }
}

package sparkrowtime.source;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.beside.Beside;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.read.NativeRead;
import sparkrowtime.support.ShimMismatch;

/**
 * Wraps Spark's stream of the Python source, and tells the query how far the stream's bound has come.
 * Spark calls every method in the query's thread: {@link #setLatestSeenOffset} at a restart, then
 * {@link #latestOffset(Offset, ReadLimit)}, {@link #planInputPartitions} and {@link #commit} for each
 * batch. It does not call latestOffset for a batch that is run again after a crash.
 *
 * <p>Law: offsets pass through as the Python side wrote them. Only the copies that are handed to the
 * Python side carry the handshake.
 */
public class BoundedStream
    implements MicroBatchStream,
        SupportsAdmissionControl,
        AcceptsLatestSeenOffset,
        ReportsSourceMetrics {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");
  private static final int MOST_ANSWERS = 8;

  private final SupportsAdmissionControl admission;
  private final MicroBatchStream stream;
  private final NativeRead read;
  private final Map<String, String> described;
  private final boolean speaks;
  private final String beside;
  private final String location;
  private String account;
  private int late;
  private Map<String, String> metrics = Map.of();
  private final Map<String, Long> answers = new HashMap<>();

  private BoundedStream(
      MicroBatchStream stream, StructType schema, CaseInsensitiveStringMap options, String location) {
    this.stream = stream;
    this.described = ReadOptions.described(options);
    this.read = new NativeRead(stream, schema);
    this.admission = (SupportsAdmissionControl) stream;
    this.speaks = options.getBoolean("punctuate", false);
    this.beside = options.get(Beside.ID);
    this.location = location;
  }

  /**
   * @param location the source's part of the checkpoint, which names this reader in the stream's retention
   */
  static BoundedStream over(
      MicroBatchStream stream,
      StructType schema,
      CaseInsensitiveStringMap options,
      String location) {
    if (stream instanceof SupportsTriggerAvailableNow) {
      return new AvailableNow(stream, schema, options, location);
    }
    if (stream instanceof SupportsAdmissionControl) {
      return new BoundedStream(stream, schema, options, location);
    }
    throw new ShimMismatch("a Python stream with admission control, not " + stream.getClass(), null);
  }

  /** Option punctuate: this stream's bound also holds for the ordinary sources that it is mixed with. */
  public boolean speaks() {
    return speaks;
  }

  /** Whether these are the late rows of a stream. A later one may have any time, until the stream has ended. */
  public boolean isOfLateRows() {
    return "rejected".equalsIgnoreCase(described.get("view"));
  }

  /** The id of this use of a stream of bounds beside topics; null for other streams. */
  public String beside() {
    return beside;
  }

  /** What an account has of this source besides its position. */
  public Map<String, String> described() {
    return described;
  }

  /** Where the rowtime stream is; null if its options do not name it. */
  String path() {
    return described.get("path");
  }

  @Override
  public void setLatestSeenOffset(Offset offset) {
    OffsetJson.requireOurs(offset.json());
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
          Offset from = withAccount(withShim(start), query.account());
          Offset end = next(query.newsWait(), from, start, limit);
          query.reached(this, end == null ? start : end);
          return end;
        });
  }

  /** The end of the next batch; {@code start} if no news have come while the query waited for some. */
  private Offset next(NewsWait wait, Offset from, Offset start, ReadLimit limit) {
    wait.begin(this);
    Offset end = Planner.answer(() -> admission.latestOffset(from, limit));
    while (start.equals(end) && wait.heard(this, seconds -> isNews(start, seconds, wait.beside(this)))) {
      end = Planner.answer(() -> admission.latestOffset(withShim(start), limit));
    }
    return end;
  }

  private boolean isNews(Offset start, double seconds, Set<String> beside) {
    String question = OffsetJson.news(start.json(), seconds, beside);
    return OffsetJson.isNews(Planner.answer(() -> ask(stream, question)).json());
  }

  /**
   * The least rowtime at or above {@code from} among the rows that were sent up to {@code end}; {@link
   * sparkrowtime.bounds.Bound#UNLIMITED} if there is none. The rows up to an offset never change, so
   * the last answers are cached.
   */
  public long leastSent(Offset end, long from) {
    String question = OffsetJson.leastSent(end.json(), from);
    if (answers.size() > MOST_ANSWERS) {
      answers.clear();
    }
    return answers.computeIfAbsent(question, q -> OffsetJson.least(Planner.answer(() -> ask(stream, q)).json()));
  }

  /** The floor of bounds beside topics, of which the batch reads up to these offsets. A function of both arguments. */
  public long floorAt(Offset end, String ofTopics) {
    String question = OffsetJson.floorAt(end.json(), ofTopics);
    if (answers.size() > MOST_ANSWERS) {
      answers.clear();
    }
    return answers.computeIfAbsent(question, q -> OffsetJson.floor(Planner.answer(() -> ask(stream, q)).json()));
  }

  /** Throws if bounds of this stream are about topics with other ids than those of now. */
  public void requireTopics(Offset end, Map<String, String> ids) {
    if (!ids.isEmpty()) {
      String question = OffsetJson.topicIds(end.json(), ids);
      Planner.run(() -> ask(stream, question));
    }
  }

  /** Keeps the late rows of a batch of the topics, an Arrow stream, in the stream of bounds, if it does not have them. */
  public void keepLate(Offset end, String query, long batch, long floor, byte[] rows) {
    String source = location.substring(location.lastIndexOf('/') + 1);
    String question = OffsetJson.keepLate(end.json(), query + "-" + source, batch, floor, rows);
    Planner.run(() -> ask(stream, question));
  }

  /** The number of late rows of the last batch, for the query's progress. */
  public void late(int rows) {
    late = rows;
  }

  /** Asks the Python side. The question is a start offset that is never written to a log. */
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
    if (beside == null) {
      return metrics;
    }
    Map<String, String> all = new LinkedHashMap<>(metrics);
    all.put("rowsLate", Integer.toString(late));
    return all;
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return Planner.answer(() -> read.partitions(withShim(start), end));
  }

  /** Adds the query's account, if it has not been passed on. */
  private Offset withAccount(Offset offset, String now) {
    if (now.equals(account)) {
      return offset;
    }
    account = now;
    return stream.deserializeOffset(OffsetJson.withAccount(offset.json(), now));
  }

  private Offset withShim(Offset offset) {
    return stream.deserializeOffset(OffsetJson.withShim(offset.json(), location));
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
    OffsetJson.requireOurs(json);
    return stream.deserializeOffset(json);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return read.readers();
  }

  @Override
  public void commit(Offset end) {
    Planner.run(() -> stream.commit(end));
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
      Offset logged = query == null ? null : query.committed(this);
      // Before the first batch of a run it is still as the log has it, which Spark's stream does not take.
      Offset done = logged == null ? null : stream.deserializeOffset(logged.json());
      if (done != null) {
        stream.commit(done);
      }
      if (query != null) {
        ended(query, done);
        query.close();
      }
    } finally {
      stream.stop();
    }
  }

  /** Records that the query has ended, and with which error. The Python process may have ended before. */
  private void ended(BoundedQuery query, Offset done) {
    try {
      Offset at = done == null ? stream.initialOffset() : done;
      ask(stream, OffsetJson.ended(at.json(), query.account(), query.error()));
    } catch (Exception e) {
      LOG.debug("The end of the query could not be recorded in its source.", e);
    }
  }

  @Override
  public String toString() {
    return "rowtime[" + stream + "]";
  }

  /** The same for a Python stream that supports Trigger.AvailableNow. */
  private static final class AvailableNow extends BoundedStream
      implements SupportsTriggerAvailableNow {
    private final SupportsTriggerAvailableNow available;

    AvailableNow(
        MicroBatchStream stream, StructType schema, CaseInsensitiveStringMap options, String location) {
      super(stream, schema, options, location);
      this.available = (SupportsTriggerAvailableNow) stream;
    }

    @Override
    public void prepareForTriggerAvailableNow() {
      available.prepareForTriggerAvailableNow();
    }
  }
}

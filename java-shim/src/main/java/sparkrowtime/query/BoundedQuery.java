package sparkrowtime.query;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.apache.spark.sql.internal.SQLConf;
import sparkrowtime.analysis.RefuseSettings;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.bounds.RowsSeen;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.TableStream;

/**
 * One run of a streaming query that reads rowtime streams, or tables with bounds: its current bounds, and the places in
 * Spark's execution where they are applied. Used only in the query's thread.
 *
 * <p>It is created at the first call of Spark to one of the streams: setLatestSeenOffset at a restart (so
 * that a batch that is run again is covered, too), otherwise latestOffset.
 *
 * <p>Law: floors come from offsets alone, so a batch that is run again sees the floors of its first run.
 */
public final class BoundedQuery {
  private final MicroBatchExecution execution;
  private final Map<SparkDataStream, Long> reached = new HashMap<>();
  private final EventWait eventWait;
  private DataWriterFactory writers;
  private String status;
  private TopicBatch topics;
  private LateBatch late;

  private BoundedQuery(MicroBatchExecution execution) {
    this.execution = execution;
    this.eventWait = new EventWait(execution);
  }

  /** The query of this thread. From now on its bounds are applied. */
  public static BoundedQuery running() {
    MicroBatchExecution execution = execution();
    if (execution == null && isStopping()) {
      throw new IllegalStateException("The query, or its session, was stopped.");
    } else if (execution == null) {
      throw new ShimMismatch(
          "the running micro-batch query under the local property " + StreamExecution.QUERY_ID_KEY(), null);
    }
    BoundPropagator ours = propagator(execution);
    return ours != null ? ours.query() : new BoundedQuery(execution).propagating();
  }

  /** The query of this thread if its bounds are applied, else null. */
  public static BoundedQuery ofThisThread() {
    MicroBatchExecution execution = execution();
    BoundPropagator ours = execution == null ? null : propagator(execution);
    return ours == null ? null : ours.query();
  }

  /** Whether the query was stopped, or its session, which then is not the active session of this thread any more. */
  private static boolean isStopping() {
    SparkContext context = Scala.orNull(SparkContext$.MODULE$.getActive());
    return Thread.currentThread().isInterrupted() || context == null || context.isStopped();
  }

  private static MicroBatchExecution execution() {
    SparkSession session = Scala.orNull(SparkSession.getActiveSession());
    String id =
        session == null ? null : session.sparkContext().getLocalProperty(StreamExecution.QUERY_ID_KEY());
    Object found =
        id == null ? null : session.sharedState().activeStreamingQueries().get(UUID.fromString(id));
    return found instanceof MicroBatchExecution execution ? execution : null;
  }

  private static BoundPropagator propagator(MicroBatchExecution execution) {
    try {
      return propagatorField().get(execution) instanceof BoundPropagator ours ? ours : null;
    } catch (IllegalAccessException e) {
      throw new ShimMismatch("to be able to read MicroBatchExecution.watermarkPropagator", e);
    }
  }

  private BoundedQuery propagating() {
    SQLConf conf = execution.sparkSessionForStream().sessionState().conf();
    RefuseSettings.check(conf);
    StablePlan.require(conf, execution.logicalPlan());
    FirstZone.require(execution);
    Runnable keepTimes = CheckpointedTimes.check(execution);
    CheckpointedBounds.check(execution);
    keepTimes.run();
    try {
      propagatorField().set(execution, new BoundPropagator(this));
      return this;
    } catch (IllegalAccessException e) {
      throw new ShimMismatch("to be able to set MicroBatchExecution.watermarkPropagator", e);
    }
  }

  private static Field propagatorField() {
    try {
      Field field = MicroBatchExecution.class.getDeclaredField("watermarkPropagator");
      field.setAccessible(true);
      return field;
    } catch (ReflectiveOperationException | RuntimeException e) {
      throw new ShimMismatch("a field MicroBatchExecution.watermarkPropagator", e);
    }
  }

  /** The offset of {@code stream} after the last batch in Spark's commit log; null before the first batch. */
  public Offset committed(RowtimeStream stream) {
    return Scala.orNull(execution.committedOffsets().get(stream));
  }

  /** The same of the topics beside a stream of bounds; null also if there are none. */
  public String committedTopic(RowtimeStream stream) {
    Offset read = stream.unionId() == null ? null : Scala.orNull(execution.committedOffsets().get(topics().topic(stream)));
    return read == null ? null : read.json();
  }

  /** Replaces Spark's tracker, which Spark creates again when it starts or restarts, by ours. */
  public void install() {
    if (execution.watermarkTracker() != null
        && !(execution.watermarkTracker() instanceof BoundTracker)) {
      execution.watermarkTracker_$eq(
          new BoundTracker(execution.logicalPlan(), execution.watermarkTracker(), topics(), late()));
    }
  }

  /** Called by a stream before it looks for the end of the next batch, which begins at {@code start}. */
  public void reads(SparkDataStream stream, Offset start) {
    install();
    AddedSources.check(this, stream, start);
  }

  /** Called by a stream when it knows the end of the next batch, before Spark logs it. */
  public void reached(SparkDataStream stream, Offset end) {
    if (hasTopic(stream)) {
      tracker().advance(this::floor);
      return;
    }
    Long floor = floor(end, stream);
    if (!floor.equals(reached.put(stream, floor))) {
      tracker().advance(this::floor);
    }
  }

  private BoundTracker tracker() {
    if (execution.watermarkTracker() instanceof BoundTracker ours) {
      return ours;
    }
    throw new ShimMismatch("MicroBatchExecution.watermarkTracker to be set before latestOffset", null);
  }

  /** The latest known floor of a stream: from its last latestOffset or, after a restart, from the log. */
  private long floor(SparkDataStream stream) {
    Long floor = reached.get(stream);
    return floor != null ? floor : floor(execution.getLatestExecutionContext().endOffsets(), stream);
  }

  long floor(StreamProgress progress, SparkDataStream stream) {
    if (hasTopic(stream)) {
      return topics().floor(progress, (RowtimeStream) stream);
    }
    Offset offset = Scala.orNull(progress.get(stream));
    return offset == null ? Bound.UNKNOWN_YET : floor(offset, stream);
  }

  static long floor(Offset offset, SparkDataStream stream) {
    boolean ofTable = stream instanceof TableStream;
    return EndOfTime.floor(ofTable ? ((TableStream) stream).floor(offset.json()) : OffsetJson.floor(offset.json()));
  }

  private static boolean hasTopic(SparkDataStream stream) {
    return stream instanceof RowtimeStream ours && ours.unionId() != null;
  }

  /** The floors at the end of a batch, which is the current one or the one before it. */
  ToLongFunction<SparkDataStream> floorsOf(long batchId) {
    StreamProgress progress = endOf(batchId);
    return stream -> floor(progress, stream);
  }

  /** The rows that the streams have sent by the end of a batch. */
  RowsSeen seenIn(long batchId) {
    StreamProgress progress = endOf(batchId);
    return new RowsSeen(stream -> Scala.orNull(progress.get(stream)));
  }

  private StreamProgress endOf(long batchId) {
    var context = execution.getLatestExecutionContext();
    return batchId >= context.batchId() ? context.endOffsets() : context.startOffsets();
  }

  /** The eviction of a join in the batch that is being planned; null for other operators. */
  JoinSides sidesOf(long operator) {
    return propagator(execution).sidesOf(operator);
  }

  /** The watermark that Spark's log has for its last batch, in milliseconds; 0 for none. */
  public long watermark() {
    return execution.watermarkTracker() == null ? 0 : execution.watermarkTracker().currentWatermark();
  }

  /** The late rows of the batch. */
  LateBatch late() {
    if (late == null) {
      late = new LateBatch(this);
    }
    return late;
  }

  /** The streams of bounds beside topics. */
  TopicBatch topics() {
    if (topics == null) {
      topics = new TopicBatch(this);
    }
    return topics;
  }

  /** Frees what this run has opened. */
  public void close() {
    if (topics != null) {
      topics.close();
    }
  }

  boolean isCurrent(long batchId) {
    return batchId >= execution.getLatestExecutionContext().batchId();
  }

  /** The writers of the tasks of the query's sink, made at the first batch of the run. */
  public DataWriterFactory writers(Supplier<DataWriterFactory> made) {
    if (writers == null) {
      writers = made.get();
    }
    return writers;
  }

  /** The properties for the commit of the batch that is written, where its sink asks for them; empty for none. */
  public Map<String, String> committedProperties() {
    return propagator(execution).committed().of(execution.getLatestExecutionContext().batchId());
  }

  /** What the query tells about its last batch that was planned, or only about its run; see {@link QueryStatus}. */
  public String status() {
    return status != null ? status : QueryStatus.ofRun(execution).toString();
  }

  void reported(String status) {
    this.status = status;
  }

  /** With which error the query has failed, in one line; null if it has not. */
  public String error() {
    Object failed = Scala.orNull(execution.exception());
    return failed == null ? null : QueryError.line((Throwable) failed);
  }

  /** How the query waits for news. */
  public EventWait eventWait() {
    return eventWait;
  }

  /** How many tasks Spark runs at once. */
  int cores() {
    return execution.sparkSessionForStream().sparkContext().defaultParallelism();
  }

  MicroBatchExecution spark() {
    return execution;
  }

  WatermarkNodes nodes() {
    install();
    return tracker().nodes();
  }
}

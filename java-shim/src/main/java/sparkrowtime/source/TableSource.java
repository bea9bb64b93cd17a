package sparkrowtime.source;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.execution.streaming.runtime.SerializedOffset;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;
import sparkrowtime.tables.CommitFiles;
import sparkrowtime.tables.DeltaBounds;
import sparkrowtime.tables.DeltaOffset;
import sparkrowtime.tables.DeltaWatch;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableStream;

/**
 * Wraps Delta's streaming source, and tells the query which bound its offset has reached. All else is Delta's. Spark
 * calls every method in the query's thread.
 */
final class TableSource extends TableStream
    implements SupportsAdmissionControl, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private static final String MAPPING = "delta.columnMapping.mode";

  private final Source source;
  private final String number;
  private final Path data;
  private final DeltaBounds bounds;
  private final DeltaWatch watch;
  private boolean begun;
  private Long floor;

  /**
   * @param watch derives the bounds; null where they are in the commits
   */
  private TableSource(Source source, String number, Path data, DeltaBounds bounds, DeltaWatch watch) {
    this.source = source;
    this.number = number;
    this.data = data;
    this.bounds = bounds;
    this.watch = watch;
  }

  /**
   * Refuses a table that is not the one of which the user has named the bounds.
   *
   * @param checkpoint the source's part of the checkpoint
   */
  static TableSource over(Source source, String checkpoint, InTable mark) {
    if (!(source instanceof SupportsAdmissionControl) || !(source instanceof SupportsTriggerAvailableNow)) {
      throw new ShimMismatch("Delta's streaming source with limits and Trigger.AvailableNow, not " + source.getClass(), null);
    }
    Object log = called(source, "deltaLog");
    Path data = (Path) called(log, "dataPath");
    Configuration hadoop = (Configuration) called(log, "newDeltaHadoopConf");
    mark.requireOf(data, hadoop);
    String number = new Path(checkpoint).getName();
    CommitFiles files = new CommitFiles((Path) called(log, "logPath"), hadoop);
    DeltaWatch watch = mark.lateness() == null ? null : watch(mark, log, files);
    return new TableSource(source, number, data, new DeltaBounds(files, mark.column()), watch);
  }

  private static DeltaWatch watch(InTable mark, Object log, CommitFiles files) {
    Object metadata = called(called(log, "unsafeVolatileSnapshot"), "metadata");
    Object mapping = CollectionConverters.asJava((scala.collection.Map<?, ?>) called(metadata, "configuration")).get(MAPPING);
    if (mark.column() == null) {
      throw refused("punctuate is over a time that is computed, of which the table has no statistics. Call it on the column");
    } else if (mapping != null && !mapping.equals("none")) {
      throw refused("the table has " + MAPPING + "=" + mapping + ", so its statistics name columns otherwise");
    }
    return new DeltaWatch(files, mark.column(), mark.lateness());
  }

  private static IllegalArgumentException refused(String why) {
    return new IllegalArgumentException(
        "punctuate(..., watch={\"lateness\": ...}): " + why + ". Or let a drain or a query write bounds into the commits.");
  }

  /** Delta's classes are found by their names: they come with its jar, if at all. */
  private static Object called(Object on, String method) {
    try {
      return on.getClass().getMethod(method).invoke(on);
    } catch (ReflectiveOperationException | RuntimeException e) {
      throw new ShimMismatch("a method " + method + " of " + on.getClass(), e);
    }
  }

  @Override
  public Long floor(String offset) {
    return watch == null ? bounds.floorBehind(version(offset)) : DeltaOffset.floor(offset);
  }

  @Override
  public long version(String offset) {
    return DeltaOffset.of(offset).passed();
  }

  @Override
  public Path table() {
    return data;
  }

  @Override
  public String number() {
    return number;
  }

  /**
   * The query of this thread, whose bounds are applied from its first call on.
   *
   * @param reached the end of the last batch in Spark's log; null for none
   */
  private BoundedQuery query(org.apache.spark.sql.connector.read.streaming.Offset reached) {
    BoundedQuery query = BoundedQuery.running();
    query.install();
    boolean counts = watch == null && reached != null && query.watermark() > 0;
    if (counts && !begun && floor(reached.json()) == null && bounds.isCleaned()) {
      throw new IllegalStateException(
          "DataLostError: this query has counted on a bound of " + data + ", and the commit that has it is no longer in the"
              + " table's log: the log was cleaned up (delta.logRetentionDuration) after later commits of others. Start the"
              + " query with a new checkpointLocation and a new output, and let the drain or the query that writes the bounds"
              + " commit more often than the log is cleaned up.");
    }
    begun = true;
    return query;
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    return ShimMismatch.guarded(
        () -> {
          BoundedQuery query = query(start);
          query.reads(this, start);
          var from = watch == null ? start : ofDelta(start);
          var end = published(start, ((SupportsAdmissionControl) source).latestOffset(from, limit));
          if (end != null) {
            floor = floor(end.json());
            query.reached(this, end);
          }
          return end;
        });
  }

  @Override
  public Map<String, String> metrics(Optional<org.apache.spark.sql.connector.read.streaming.Offset> latestConsumed) {
    Map<String, String> metrics = new LinkedHashMap<>();
    if (floor != null) {
      metrics.put("bound", Shown.time(floor));
    }
    metrics.put("rowsLate", Long.toString(late()));
    return metrics;
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return ((SupportsAdmissionControl) source).getDefaultReadLimit();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return ((SupportsAdmissionControl) source).reportLatestOffset();
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    ((SupportsTriggerAvailableNow) source).prepareForTriggerAvailableNow();
  }

  @Override
  public StructType schema() {
    return source.schema();
  }

  @Override
  public Option<Offset> getOffset() {
    return source.getOffset();
  }

  /** Spark calls it before it plans a batch, and before latestOffset where a batch runs again after a crash. */
  @Override
  public Dataset<Row> getBatch(Option<Offset> start, Offset end) {
    ShimMismatch.guarded(() -> query(end));
    return source.getBatch(start.map(Scala.function(this::ofDelta)), ofDelta(end));
  }

  /** The end of a batch, as Spark logs it. */
  private org.apache.spark.sql.connector.read.streaming.Offset published(
      org.apache.spark.sql.connector.read.streaming.Offset start, org.apache.spark.sql.connector.read.streaming.Offset end) {
    return watch == null || end == null
        ? end
        : new SerializedOffset(watch.withFloor(start == null ? null : start.json(), end.json()));
  }

  /** An offset as Delta's source has made it. */
  private Offset ofDelta(org.apache.spark.sql.connector.read.streaming.Offset offset) {
    boolean isOfDelta = watch == null || offset == null;
    return isOfDelta ? (Offset) offset : new SerializedOffset(DeltaOffset.ofDelta(offset.json()));
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    return source.initialOffset();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset deserializeOffset(String json) {
    return watch == null ? source.deserializeOffset(json) : new SerializedOffset(json);
  }

  @Override
  public void commit(Offset end) {
    source.commit(ofDelta(end));
  }

  @Override
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {
    source.commit(end);
  }

  @Override
  public void stop() {
    source.stop();
  }

  @Override
  public String toString() {
    return source.toString();
  }
}

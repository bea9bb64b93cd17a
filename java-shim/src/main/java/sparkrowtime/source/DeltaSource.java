package sparkrowtime.source;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.execution.streaming.runtime.SerializedOffset;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.support.ByName;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.DeltaLog;
import sparkrowtime.tables.DeltaOffset;
import sparkrowtime.tables.DeltaWatch;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;

/**
 * Wraps Delta's streaming source, and tells the query which bound its offset has reached. All else is Delta's. Spark
 * calls every method in the query's thread.
 */
final class DeltaSource extends TableSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private static final String MAPPING = "delta.columnMapping.mode";

  private final Source source;
  private final DeltaWatch watch;

  /**
   * @param watch derives the bounds; null where they are in the commits
   */
  private DeltaSource(Source source, String checkpoint, DeltaLog log, String column, DeltaWatch watch) {
    super(log, checkpoint, column);
    this.source = source;
    this.watch = watch;
  }

  /**
   * Refuses a table that is not the one of which the user has named the bounds.
   *
   * @param checkpoint the source's part of the checkpoint
   */
  static DeltaSource over(Source source, String checkpoint, InTable mark) {
    if (!(source instanceof SupportsAdmissionControl) || !(source instanceof SupportsTriggerAvailableNow)) {
      throw new ShimMismatch("Delta's streaming source with limits and Trigger.AvailableNow, not " + source.getClass(), null);
    }
    Object log = ByName.call(source, "deltaLog");
    Configuration hadoop = (Configuration) ByName.call(log, "newDeltaHadoopConf");
    mark.requireOf(TableName.ofDelta((Path) ByName.call(log, "dataPath"), hadoop), hadoop);
    DeltaLog commits = new DeltaLog((Path) ByName.call(log, "logPath"), hadoop);
    DeltaWatch watch = mark.lateness() == null ? null : watch(mark, log, commits);
    return new DeltaSource(source, checkpoint, commits, mark.column(), watch);
  }

  private static DeltaWatch watch(InTable mark, Object log, DeltaLog files) {
    Object metadata = ByName.call(ByName.call(log, "unsafeVolatileSnapshot"), "metadata");
    Object mapping = CollectionConverters.asJava((scala.collection.Map<?, ?>) ByName.call(metadata, "configuration")).get(MAPPING);
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

  @Override
  public Long floor(String offset) {
    return watch == null ? super.floor(offset) : DeltaOffset.floor(offset);
  }

  @Override
  public long passed(String offset) {
    return DeltaOffset.of(offset).passed();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    return next(
        start,
        from -> published(from, ((SupportsAdmissionControl) source).latestOffset(watch == null ? from : ofDelta(from), limit)));
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

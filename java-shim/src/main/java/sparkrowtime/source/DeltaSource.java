package sparkrowtime.source;

import java.util.OptionalLong;
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
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;
import sparkrowtime.tables.TableWatch;

/**
 * Wraps Delta's streaming source, and tells the query which bound its offset has reached. All else is Delta's. Spark
 * calls every method in the query's thread.
 */
final class DeltaSource extends TableSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private static final String MAPPING = "delta.columnMapping.mode";

  private final Source source;

  private DeltaSource(Source source, String checkpoint, DeltaLog log, InTable mark) {
    super(log, checkpoint, mark);
    this.source = source;
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
    if (mark.declared() != null && mark.declared().isOfRows()) {
      requireStatistics(log, mark.column());
    }
    return new DeltaSource(source, checkpoint, new DeltaLog((Path) ByName.call(log, "logPath"), hadoop), mark);
  }

  /** Statistics name columns as the files do. Of a column by which files are divided there are none. */
  private static void requireStatistics(Object log, String column) {
    Object metadata = ByName.call(ByName.call(log, "unsafeVolatileSnapshot"), "metadata");
    Object mapping = CollectionConverters.asJava((scala.collection.Map<?, ?>) ByName.call(metadata, "configuration")).get(MAPPING);
    if (mapping != null && !mapping.equals("none")) {
      throw TableWatch.refused("the table has " + MAPPING + "=" + mapping + ", so its statistics name columns otherwise");
    }
    scala.collection.Seq<?> parts = (scala.collection.Seq<?>) ByName.call(metadata, "partitionColumns");
    if (Scala.list(parts).stream().anyMatch(part -> part.toString().equalsIgnoreCase(column))) {
      throw TableWatch.refused("the table is partitioned by the column " + column + ", of which its files have no statistics");
    }
  }

  /** The one before startingVersion, or that of the snapshot which the query starts with, while it is read. */
  @Override
  OptionalLong beginning() {
    Option<?> given = (Option<?>) ByName.call(source, "getStartingVersion");
    long snapshot = (Long) ByName.call(source, "initialStateVersion");
    if (given.isDefined()) {
      return OptionalLong.of((Long) given.get() - 1);
    }
    return snapshot < 0 ? OptionalLong.empty() : OptionalLong.of(snapshot);
  }

  @Override
  public long passed(String offset) {
    return DeltaOffset.of(offset).passed();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    return next(start, from -> ((SupportsAdmissionControl) source).latestOffset(from, limit));
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

  private Offset ofDelta(Offset offset) {
    return (Offset) ofFormat(offset);
  }

  @Override
  Offset ofFormat(String json) {
    return new SerializedOffset(json);
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset initialOffset() {
    return source.initialOffset();
  }

  @Override
  public void commit(Offset end) {
    source.commit(ofDelta(end));
  }

  @Override
  public void commit(org.apache.spark.sql.connector.read.streaming.Offset end) {
    source.commit(ofFormat(end));
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

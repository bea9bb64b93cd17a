package sparkrowtime.query;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.CommitLog;
import sparkrowtime.tables.TableWriter;

/**
 * The bound of a query's output in the commits of the table that it writes with the sink of Delta or Iceberg, where the option
 * {@value #OPTION} names the output column. Used in the query's thread.
 *
 * <p>Law: a commit has its batch's bound, and never that of a later batch.
 */
final class CommittedBound {
  private static final String OPTION = "rowtimeBound";
  private static final String SETTING = "spark.rowtime.tableBound";
  private static final int HASH_BYTES = 6;

  private final BoundedQuery query;
  private final BoundedSink sink;
  private final String column;
  private final TableWriter writer;

  CommittedBound(BoundedQuery query) {
    this.query = query;
    LogicalPlan plan = query.spark().logicalPlan();
    this.sink = named(plan) == null ? null : BoundedSink.of(plan);
    this.column = column(plan);
    this.writer = column == null ? null : writer();
  }

  /** The output column that the option of a query names, or the setting where queries have none; null without both. */
  static String named(LogicalPlan plan) {
    Map<String, String> options = plan instanceof WriteToMicroBatchDataSourceV1 write
        ? CollectionConverters.asJava(write.writeOptions())
        : plan instanceof WriteToMicroBatchDataSource write ? CollectionConverters.asJava(write.writeOptions()) : null;
    return options == null
        ? null
        : new CaseInsensitiveStringMap(options).getOrDefault(OPTION, SQLConf.get().getConfString(SETTING, null));
  }

  private String column(LogicalPlan plan) {
    String column = named(plan);
    if (column == null) {
      return null;
    }
    List<Attribute> output = Scala.list(plan.children().apply(0).output());
    List<String> times = OutputPaths.places(output).stream().map(OutputPaths.Path::name).toList();
    if (sink == null) {
      throw refused(column, "it is for format(\"delta\") and format(\"iceberg\")");
    } else if (sink.whyNot() != null) {
      throw refused(column, sink.whyNot());
    } else if (!times.contains(column)) {
      throw refused(column, "the output has no such column. It has " + String.join(", ", times));
    } else if (query.spark().outputMode().equals(OutputMode.Complete())) {
      throw refused(column, "complete mode writes all results again in each batch, so no bound is true. Use append mode");
    }
    return column;
  }

  private TableWriter writer() {
    CommitLog log = sink.log(query.spark().sparkSessionForStream());
    if (query.late().reads(log.table())) {
      throw refused(column, "the query reads the table that it writes, " + log.table().name() + ". Write to another one");
    }
    return new TableWriter(log, query.spark().id().toString());
  }

  static IllegalArgumentException refused(String column, String why) {
    return new IllegalArgumentException("Option " + OPTION + "=" + column + ": " + why + ".");
  }

  /**
   * @param floors the bounds of the output columns on later batches, by path
   * @param end the end offsets of the batch
   * @param status what the query tells about the batch
   */
  void publish(long batch, Map<String, Long> floors, String end, String status) {
    if (column != null) {
      String offsets = hash(end);
      writer.requireAlone(batch, offsets);
      Map<String, String> properties = new LinkedHashMap<>();
      if (floors.containsKey(column)) {
        long floor = asStored(floors.get(column));
        boolean strict = floor == EndOfTime.PUBLISHED;
        Instant time = Instant.EPOCH.plus(strict ? floor - 1 : floor, ChronoUnit.MICROS);
        properties.put("rowtime.bound", time.toString());
        properties.put("rowtime.strict", Boolean.toString(strict));
        properties.put("rowtime.column", column);
      }
      properties.put("rowtime.query", query.spark().id().toString());
      properties.put("rowtime.batch", Long.toString(batch));
      properties.put(TableWriter.OFFSETS, offsets);
      sink.publish(properties, status);
    }
  }

  /** The one that {@code rt.tableWriter} puts into its commits, too. */
  private static String hash(String text) {
    try {
      byte[] hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
      return HexFormat.of().formatHex(hash, 0, HASH_BYTES);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Spark can be told to store times in whole milliseconds, which are before those of the rows. */
  private static long asStored(long floor) {
    boolean isCut = SQLConf.get().getConfString("spark.sql.parquet.outputTimestampType").equalsIgnoreCase("TIMESTAMP_MILLIS");
    return isCut && floor != EndOfTime.PUBLISHED ? Math.floorDiv(floor, 1000) * 1000 : floor;
  }

  /** The properties for the commit of a batch, where its sink asks for them when it commits; otherwise none. */
  Map<String, String> of(long batch) {
    return column == null ? Map.of() : sink.asked(batch);
  }
}

package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.CommitFiles;
import sparkrowtime.tables.DeltaWriter;
import sparkrowtime.tables.InTable;

/**
 * The bound of a query's output in the commits of the Delta table that it writes with Delta's own sink, where the option
 * {@value #OPTION} names the output column. Delta writes the metadata of a commit as the setting {@value #METADATA} has it
 * when the batch is written. Used in the query's thread.
 *
 * <p>Law: a commit has its batch's bound, and never that of a later batch.
 */
final class CommittedBound {
  private static final String OPTION = "rowtimeBound";
  private static final String SETTING = "spark.rowtime.tableBound";
  private static final String METADATA = "spark.databricks.delta.commitInfo.userMetadata";
  private static final String SINK = "org.apache.spark.sql.delta.sources.DeltaSink";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final BoundedQuery query;
  private final String column;
  private final DeltaWriter writer;

  CommittedBound(BoundedQuery query) {
    this.query = query;
    this.column = column(query.spark().logicalPlan());
    this.writer = column == null ? null : writer((WriteToMicroBatchDataSourceV1) query.spark().logicalPlan());
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
    if (!(plan instanceof WriteToMicroBatchDataSourceV1 write) || !write.sink().getClass().getName().equals(SINK)) {
      throw refused(column, "it is for format(\"delta\")");
    } else if (CollectionConverters.asJava(write.writeOptions()).keySet().stream().anyMatch("userMetadata"::equalsIgnoreCase)) {
      throw refused(column, "it is written as the option userMetadata. Leave that out");
    } else if (!times.contains(column)) {
      throw refused(column, "the output has no such column. It has " + String.join(", ", times));
    } else if (query.spark().outputMode().equals(OutputMode.Complete())) {
      throw refused(column, "complete mode writes all results again in each batch, so no bound is true. Use append mode");
    }
    return column;
  }

  private DeltaWriter writer(WriteToMicroBatchDataSourceV1 write) {
    Configuration hadoop = query.spark().sparkSessionForStream().sessionState().newHadoopConfWithOptions(write.writeOptions());
    Path table = InTable.qualified(table(write.sink()), hadoop);
    if (query.late().reads(table)) {
      throw refused(column, "the query reads the table that it writes, " + table + ". Write to another one");
    }
    return new DeltaWriter(new CommitFiles(new Path(table, "_delta_log"), hadoop), query.spark().id().toString());
  }

  /** Delta's classes are found by their names: they come with its jar, if at all. */
  private static Path table(Sink sink) {
    try {
      return (Path) sink.getClass().getMethod("path").invoke(sink);
    } catch (ReflectiveOperationException | RuntimeException e) {
      throw new ShimMismatch("a method path of " + sink.getClass(), e);
    }
  }

  static IllegalArgumentException refused(String column, String why) {
    return new IllegalArgumentException("Option " + OPTION + "=" + column + ": " + why + ".");
  }

  /**
   * @param floors the bounds of the output columns on later batches, by path
   * @param status what the query tells about the batch
   */
  void publish(long batch, Map<String, Long> floors, String status) {
    if (column != null) {
      writer.requireAlone(batch);
      Map<String, String> properties = new LinkedHashMap<>();
      if (floors.containsKey(column)) {
        long floor = floors.get(column);
        boolean strict = floor == EndOfTime.PUBLISHED;
        Instant time = Instant.EPOCH.plus(strict ? floor - 1 : floor, ChronoUnit.MICROS);
        properties.put("rowtime.bound", time.toString());
        properties.put("rowtime.strict", Boolean.toString(strict));
        properties.put("rowtime.column", column);
      }
      properties.put("rowtime.query", query.spark().id().toString());
      properties.put("rowtime.batch", Long.toString(batch));
      properties.put("rowtime.account", status);
      SparkSession.active().conf().set(METADATA, written(properties));
    }
  }

  private static String written(Map<String, String> properties) {
    try {
      return MAPPER.writeValueAsString(properties);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}

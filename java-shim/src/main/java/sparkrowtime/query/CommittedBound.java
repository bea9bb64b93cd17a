package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.support.Scala;

/**
 * The bound of a query's output in the commits of the Delta table that it writes with Delta's own sink, where the option
 * {@value #OPTION} names the output column. Delta writes the metadata of a commit as the setting {@value #METADATA} has it
 * when the batch is written. Used in the query's thread.
 *
 * <p>Law: a commit has its batch's bound, and never that of a later batch.
 */
final class CommittedBound {
  private static final String OPTION = "rowtimeBound";
  private static final String METADATA = "spark.databricks.delta.commitInfo.userMetadata";
  private static final String SINK = "org.apache.spark.sql.delta.sources.DeltaSink";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final BoundedQuery query;
  private final String column;

  CommittedBound(BoundedQuery query) {
    this.query = query;
    this.column =
        query.spark().logicalPlan() instanceof WriteToMicroBatchDataSourceV1 write ? column(write) : null;
  }

  private static String column(WriteToMicroBatchDataSourceV1 write) {
    var options = new CaseInsensitiveStringMap(CollectionConverters.asJava(write.writeOptions()));
    String column = options.get(OPTION);
    List<Attribute> output = Scala.list(write.child().output());
    List<String> times = OutputPaths.places(output).stream().map(OutputPaths.Path::name).toList();
    if (column == null) {
      return null;
    } else if (!write.sink().getClass().getName().equals(SINK)) {
      throw refused(column, "it is for format(\"delta\"), not for " + write.sink());
    } else if (options.containsKey("userMetadata")) {
      throw refused(column, "it is written as the option userMetadata. Leave that out");
    } else if (!times.contains(column)) {
      throw refused(column, "the output has no such column. It has " + String.join(", ", times));
    }
    return column;
  }

  private static IllegalArgumentException refused(String column, String why) {
    return new IllegalArgumentException("Option " + OPTION + "=" + column + ": " + why + ".");
  }

  /**
   * @param floors the bounds of the output columns on later batches, by path
   */
  void publish(long batch, Map<String, Long> floors) {
    if (column != null) {
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

package sparkrowtime.query;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.types.TimestampType;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.bounds.WindowGrid;
import sparkrowtime.plan.Operators;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.TableName;
import sparkrowtime.tables.TableStream;

/**
 * What a query tells about one of its batches, as a JSON object of a few KB: its sources and how far it has
 * read them, its stateful operators, the bounds of its output, and where a column has lost its bound. It is for
 * people who ask why there is no output; java-shim/README.md lists its keys. Made in the query's thread when a
 * batch is planned. One object serves all batches of a run.
 *
 * <p>Law: nothing that the query computes depends on a status.
 */
final class QueryStatus {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final int MOST_CHARACTERS = 300;
  private static final int MOST_OFFSETS_CHARACTERS = 20_000;

  private final MicroBatchExecution spark;
  private final TopicBatch topics;
  private final LogicalPlan written;
  private final SourcePlaces places;
  private final WindowGrid grid;

  QueryStatus(BoundedQuery query, Definitions definitions) {
    this.spark = query.spark();
    this.topics = query.topics();
    this.written = spark.logicalPlan().children().apply(0);
    this.places = new SourcePlaces(spark.logicalPlan());
    this.grid = new WindowGrid(definitions, spark.logicalPlan());
  }

  /** The status of a run that has not planned a batch. */
  static ObjectNode ofRun(MicroBatchExecution spark) {
    ObjectNode json = MAPPER.createObjectNode();
    return json.put("query", spark.id().toString()).put("name", spark.name()).put("run", spark.runId().toString());
  }

  /**
   * @param plan the physical plan of the batch
   * @param batch what the batch gives to the stateful operators
   * @param floors the bounds of the output columns, by path
   * @param bounds the bounds of all columns in the batch
   */
  String of(long batchId, SparkPlan plan, Propagation batch, Map<String, Long> floors, PlanBounds bounds) {
    ObjectNode json = ofRun(spark).put("batch", batchId);
    ArrayNode sources = json.putArray("sources");
    places.forEach(
        (stream, above) -> {
          if (!topics.isTopic(stream)) {
            source(sources.addObject().put("behind", behind(stream, batch)), stream, above);
          }
        });
    operators(json.putArray("operators"), plan, batch);
    follows(json, bounds);
    json.set("output", MAPPER.valueToTree(floors));
    lost(json.putObject("lost"), bounds);
    return json.toString();
  }

  private void source(ObjectNode source, SparkDataStream stream, List<String> above) {
    Offset end = Scala.orNull(spark.getLatestExecutionContext().endOffsets().get(stream));
    if (stream instanceof RowtimeStream ours) {
      ours.described().forEach(source::put);
      if (end != null) {
        source.set("position", position(ours, end));
      }
      if (ours.unionId() != null) {
        topics(source.put("reads", ours.questions().reads()), topics.topic(ours));
      }
    } else {
      source.put("other", cut(stream.toString()));
      if (stream instanceof TableStream table && end != null) {
        source.put("table", told(table.table())).set("position", position(table, end));
      }
    }
    source.set("place", MAPPER.valueToTree(above));
  }

  /** By how much the joins above a source can hold its bound back. */
  private long behind(SparkDataStream stream, Propagation batch) {
    return Scala.list(spark.logicalPlan().collect(Scala.only(LogicalPlan.class))).stream()
        .filter(node -> node instanceof EventTimeWatermark && node.exists(Scala.function(n -> SourcePlaces.reads(n, stream))))
        .mapToLong(node -> batch.behind(((EventTimeWatermark) node).nodeId()))
        .max()
        .orElse(0);
  }

  /** A Delta table by its path alone. */
  private static String told(TableName table) {
    return table.format().equals(TableName.DELTA) ? table.name() : table.toString();
  }

  /** The topics beside a stream of bounds, and up to where they were read, unless there are too many partitions. */
  private void topics(ObjectNode source, SparkDataStream topics) {
    source.put("topics", cut(topics.toString()));
    Offset end = Scala.orNull(spark.getLatestExecutionContext().endOffsets().get(topics));
    if (end != null && end.json().length() <= MOST_OFFSETS_CHARACTERS) {
      source.set("read", OffsetJson.parse(end.json()));
    }
  }

  /** Of bounds beside topics, the floor counts that the topics have reached. */
  private JsonNode position(RowtimeStream stream, Offset end) {
    ObjectNode position = OffsetJson.position(end.json());
    if (stream.unionId() != null) {
      long floor = topics.floor(spark.getLatestExecutionContext().endOffsets(), stream);
      position.put("floor", floor == Bound.UNKNOWN_YET ? null : (Long) EndOfTime.published(floor));
    }
    return position;
  }

  private static JsonNode position(TableStream table, Offset end) {
    Long floor = table.floor(end.json());
    return MAPPER.createObjectNode().put("version", table.passed(end.json())).put("floor", floor);
  }

  private void operators(ArrayNode array, SparkPlan plan, Propagation batch) {
    List<StateStoreWriter> operators =
        Scala.list(plan.collect(Scala.only(SparkPlan.class))).stream()
            .filter(StateStoreWriter.class::isInstance)
            .map(StateStoreWriter.class::cast)
            .toList();
    StreamingQueryProgress last = spark.lastProgress();
    StateOperatorProgress[] progress = last == null ? new StateOperatorProgress[0] : last.stateOperators();
    for (int i = 0; i < operators.size(); i++) {
      ObjectNode node = operator(array.addObject(), operators.get(i), batch);
      if (progress.length == operators.size()) {
        node.put("rows", progress[i].numRowsTotal());
      }
    }
  }

  private ObjectNode operator(ObjectNode node, StateStoreWriter operator, Propagation batch) {
    long id = operator.stateInfo().get().operatorId();
    Long watermark = batch.inputs().get(id);
    node.put("name", operator.shortName());
    if (watermark != null && watermark > 0) {
      node.put("watermark", watermark * 1000);
    }
    node.put("emits", Operators.emits(operator));
    List<Attribute> times = Operators.times((SparkPlan) operator);
    Long done = batch.done(operator);
    if (done != null) {
      boolean groups = Operators.isAggregation(operator) && times.size() == 1;
      (groups ? grid.ahead(times.get(0)) : Optional.of(0L)).ifPresent(ahead -> node.put("done", done - ahead));
    }
    if (Operators.evictsWindows(operator) && times.size() == 1) {
      grid.of(times.get(0)).ifPresent(g -> node.set("window", MAPPER.valueToTree(g)));
    }
    return node;
  }

  /** The column of a withWatermark of which no bound speaks: the query's watermark follows the rows' values. */
  private void follows(ObjectNode json, PlanBounds bounds) {
    Scala.list(spark.logicalPlan().collect(Scala.only(EventTimeWatermark.class))).stream()
        .map(EventTimeWatermark.class::cast)
        .filter(node -> bounds.of(node) == null || bounds.of(node).isOrdinary())
        .findFirst()
        .ifPresent(node -> json.put("follows", node.eventTime().name()));
  }

  /** The output's times that have no bound, each with the expression or the operator that it comes from. */
  private void lost(ObjectNode lost, PlanBounds bounds) {
    Columns columns = bounds.of(written);
    for (Attribute a : Scala.list(written.output())) {
      if (a.dataType() instanceof TimestampType && columns.get(a) == null) {
        lost.put(a.name(), cut(Origin.ofLoss(a, written, bounds::of)));
      }
    }
  }

  private static String cut(String text) {
    return text.length() <= MOST_CHARACTERS ? text : text.substring(0, MOST_CHARACTERS) + "...";
  }
}

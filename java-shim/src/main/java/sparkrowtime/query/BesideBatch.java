package sparkrowtime.query;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.beside.Beside;
import sparkrowtime.beside.ForwardOffsets;
import sparkrowtime.beside.InTime;
import sparkrowtime.beside.LateRows;
import sparkrowtime.beside.TopicIds;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.ArrowRows;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The streams of bounds beside topics in one run of a query, and the late rows of its batch. Used in the query's
 * thread.
 *
 * <p>Law: the floor of such a stream is a function of two offsets in the log, its own and that of the topics. The late
 * rows are handed to the stream after the batch has run and before Spark commits it, under the batch's number, so the
 * stream has them once, also if the batch runs again.
 */
final class BesideBatch {
  /** Spark starts at 1970, and takes rows up to then for late. */
  private static final long FIRST_MICROS = 1;

  /** The late rows of a batch: below this floor, in microseconds. */
  record Late(InTime mark, long floor, LateRows rows) {}

  private final BoundedQuery query;
  private final Map<RowtimeStream, SparkDataStream> topics = new LinkedHashMap<>();
  private final Map<ExprId, RowtimeStream> byTime = new HashMap<>();
  private final Map<String, List<RowtimeStream>> byId = new HashMap<>();
  private final Map<RowtimeStream, List<Late>> late = new HashMap<>();
  private final Map<RowtimeStream, TopicIds> ids = new HashMap<>();
  private final Map<RowtimeStream, String> asked = new HashMap<>();
  private long batch = -1;

  BesideBatch(BoundedQuery query) {
    this.query = query;
    query.spark().logicalPlan().foreach(Scala.each(this::add));
  }

  private void add(LogicalPlan node) {
    LogicalPlan branch = node instanceof Union union ? Beside.branch(union) : null;
    if (branch != null) {
      RowtimeStream stream = (RowtimeStream) ((StreamingDataSourceV2ScanRelation) Beside.leaf(branch)).stream();
      LogicalPlan leaf = Beside.leaf(Beside.rows((Union) node, branch));
      topics.put(stream, source(leaf));
      if (leaf instanceof StreamingDataSourceV2ScanRelation relation) {
        ids.put(stream, new TopicIds(relation.stream(), relation.relation().options()));
      }
      byId.computeIfAbsent(stream.beside(), id -> new ArrayList<>()).add(stream);
      Scala.list(node.output()).forEach(a -> byTime.put(a.exprId(), stream));
    }
  }

  private static SparkDataStream source(LogicalPlan leaf) {
    if (leaf instanceof StreamingDataSourceV2ScanRelation relation) {
      return relation.stream();
    } else if (leaf instanceof StreamingExecutionRelation relation) {
      return relation.source();
    }
    throw new ShimMismatch("the source of a topic beside a stream of bounds, not " + leaf.nodeName(), null);
  }

  boolean isEmpty() {
    return topics.isEmpty();
  }

  /** Whether a source is the topics that have bounds beside them. */
  boolean isTopic(SparkDataStream source) {
    return topics.containsValue(source);
  }

  /** The topics beside a stream of bounds. */
  SparkDataStream topic(RowtimeStream bounds) {
    return topics.get(bounds);
  }

  /** The floor of a stream of bounds beside topics, for the offsets of both; the stream must be one. */
  long floor(StreamProgress progress, RowtimeStream stream) {
    Offset own = Scala.orNull(progress.get(stream));
    Offset ofTopic = Scala.orNull(progress.get(topics.get(stream)));
    return own == null || ofTopic == null ? Bound.UNKNOWN_YET : EndOfTime.floor(stream.questions().floorAt(own, ofTopic.json()));
  }

  /** Throws if the topics of the next batch have gone back. Called when the ends of all sources are known. */
  void requireForward() {
    StreamExecutionContext context = query.spark().getLatestExecutionContext();
    topics.forEach(
        (stream, topic) -> {
          Offset start = Scala.orNull(context.startOffsets().get(topic));
          Offset end = Scala.orNull(context.endOffsets().get(topic));
          if (start != null && end != null) {
            ForwardOffsets.require(stream.described().get("path"), start.json(), end.json());
          }
        });
    requireSame(context);
  }

  /**
   * Throws if topics have been deleted and created again since bounds were sent beside them, also where their offsets have
   * grown past the old ones. Asks once for each end of the topics, after Spark has seen that end.
   */
  private void requireSame(StreamExecutionContext context) {
    ids.forEach(
        (stream, ofTopics) -> {
          Offset own = Scala.orNull(context.endOffsets().get(stream));
          Offset end = Scala.orNull(context.endOffsets().get(topics.get(stream)));
          if (own != null && end != null && !end.json().equals(asked.put(stream, end.json()))) {
            stream.questions().requireTopics(own, ofTopics.of(OffsetJson.namesOfTopics(end.json())));
          }
        });
  }

  /** The run of the query has ended. */
  void close() {
    ids.values().forEach(TopicIds::close);
  }

  /** The floor of the batch that is being planned, and where to keep the rows below it. */
  Late lateIn(InTime mark, Expression time) {
    StreamExecutionContext context = query.spark().getLatestExecutionContext();
    if (context.batchId() != batch) {
      requireKept();
      requireSame(context);
      batch = context.batchId();
      late.clear();
    }
    RowtimeStream stream = stream(mark, time);
    LateRows rows = new LateRows();
    rows.register(query.spark().sparkSessionForStream().sparkContext(), scala.Option.empty(), false);
    long floor = query.floorsOf(batch - 1).applyAsLong(stream);
    Late found = new Late(mark, Math.max(floor, FIRST_MICROS), rows);
    late.computeIfAbsent(stream, s -> new ArrayList<>()).add(found);
    return found;
  }

  private void requireKept() {
    if (late.values().stream().flatMap(List::stream).anyMatch(found -> !found.rows().isZero())) {
      throw new ShimMismatch("WatermarkTracker.updateWatermark to be called after batch " + batch + " has run", null);
    }
  }

  private RowtimeStream stream(InTime mark, Expression time) {
    List<RowtimeStream> found = byId.getOrDefault(mark.id(), List.of());
    RowtimeStream only = found.size() == 1 ? found.get(0) : null;
    RowtimeStream stream = only == null && time instanceof Attribute a ? byTime.get(a.exprId()) : only;
    if (stream == null) {
      throw new ShimMismatch("the time " + time.sql() + " of a filter of late rows to be that of its union", null);
    }
    return stream;
  }

  /** The batch has run: its late rows are counted, and kept in the stream of bounds. */
  void ran() {
    topics.keySet().forEach(stream -> stream.late(0));
    late.forEach(this::keep);
    late.clear();
  }

  /** If a plan has the rows twice, each of its filters has all of them, unless a LIMIT ended one early. */
  private void keep(RowtimeStream stream, List<Late> found) {
    Late most = found.stream().reduce((a, b) -> a.rows().value().size() >= b.rows().value().size() ? a : b).get();
    stream.late(most.rows().value().size());
    if (!most.rows().isZero()) {
      Offset end = query.spark().getLatestExecutionContext().endOffsets().get(stream).get();
      long floor = EndOfTime.published(most.floor());
      stream.questions().keepLate(end, query.spark().id().toString(), batch, floor, arrow(most));
    }
  }

  private static byte[] arrow(Late late) {
    StructType kept = late.mark().kept();
    return ArrowRows.stream(late.rows().value().values().stream().map(bytes -> row(bytes, kept.length())).toList(), kept);
  }

  private static InternalRow row(byte[] bytes, int columns) {
    UnsafeRow row = new UnsafeRow(columns);
    row.pointTo(bytes, bytes.length);
    return row;
  }
}

package sparkrowtime.query;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;
import sparkrowtime.topics.ForwardOffsets;
import sparkrowtime.topics.TopicBounds;
import sparkrowtime.topics.TopicIds;

/**
 * The streams of bounds beside topics in one run of a query. Used in the query's thread.
 *
 * <p>Law: the floor of such a stream is a function of two offsets in the log, its own and that of the topics.
 */
final class TopicBatch {
  private final BoundedQuery query;
  private final Map<RowtimeStream, Union> unions = new LinkedHashMap<>();
  private final Map<RowtimeStream, SparkDataStream> topics = new LinkedHashMap<>();
  private final Map<RowtimeStream, TopicIds> ids = new HashMap<>();
  private final Map<RowtimeStream, String> asked = new HashMap<>();

  /** Where the checkpoint keeps the first offsets of the topics. */
  private final Map<RowtimeStream, String> places = new HashMap<>();
  private boolean compared;

  TopicBatch(BoundedQuery query) {
    this.query = query;
    query.spark().logicalPlan().foreach(Scala.each(this::add));
  }

  private void add(LogicalPlan node) {
    LogicalPlan branch = node instanceof Union union ? TopicBounds.branch(union) : null;
    if (branch != null) {
      RowtimeStream stream = (RowtimeStream) ((StreamingDataSourceV2ScanRelation) TopicBounds.leaf(branch)).stream();
      LogicalPlan leaf = TopicBounds.leaf(TopicBounds.rows((Union) node, branch));
      unions.put(stream, (Union) node);
      topics.put(stream, source(leaf));
      if (leaf instanceof StreamingDataSourceV2ScanRelation relation) {
        reads(stream, relation.relation().options());
        ids.put(stream, new TopicIds(relation.stream(), relation.relation().options()));
        places.put(stream, relation.relation().metadataPath());
      }
    }
  }

  /** A bound that follows messages of other topics, or partitions, counts all the same. */
  private static void reads(RowtimeStream stream, CaseInsensitiveStringMap topics) {
    String named = topics.get("subscribe");
    if (named != null) {
      stream.questions().reads("topics", Stream.of(named.split(",")).map(String::strip).collect(Collectors.toSet()));
    } else if (topics.containsKey("assign")) {
      stream.questions().reads("partitions", Set.of());
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

  /** The streams of bounds, each with the union of it and its topics. */
  Map<RowtimeStream, Union> unions() {
    return unions;
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

  /** The same where the query has read neither yet, and begins at these offsets. */
  long firstFloor(RowtimeStream stream, Offset start) {
    return EndOfTime.floor(stream.questions().floorAt(start, topics.get(stream).initialOffset().json()));
  }

  /** Forgets these offsets of topics, which Spark's source has stored: the query may be started with others. */
  void forgetFirst(RowtimeStream stream) {
    new CheckpointFile(query.spark(), places.get(stream) + "/0").remove();
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
  void requireSame(StreamExecutionContext context) {
    ids.forEach(
        (stream, ofTopics) -> {
          Offset own = Scala.orNull(context.endOffsets().get(stream));
          Offset end = Scala.orNull(context.endOffsets().get(topics.get(stream)));
          if (own != null && end != null && !end.json().equals(asked.put(stream, end.json()))) {
            stream.questions().requireTopics(own, ofTopics.of(OffsetJson.namesOfTopics(end.json())));
          }
        });
  }

  /**
   * Throws if bounds beside topics say less than this query has reached by them before it was started again: their cuts
   * have been folded since. Asks once in a run, when the first batch is planned.
   */
  void requireNotWeaker(StreamExecutionContext context) {
    if (!compared) {
      compared = true;
      requireNotWeaker(context.startOffsets(), LoggedWatermark.of(query.spark(), context.batchId() - 1));
      requireNotWeaker(context.endOffsets(), LoggedWatermark.of(query.spark(), context.batchId()));
    }
  }

  private void requireNotWeaker(StreamProgress end, long logged) {
    topics.keySet().stream()
        .filter(stream -> logged > 0 && Scala.orNull(end.get(stream)) != null)
        .forEach(stream -> requireNotWeaker(stream, logged, floor(end, stream)));
  }

  private static void requireNotWeaker(RowtimeStream stream, long logged, long floor) {
    if (Math.floorDiv(floor, 1000L) < logged) {
      throw new IllegalStateException(
          "The query has reached the watermark " + Shown.time(logged * 1000) + " by the bounds in "
              + stream.described().get("path") + ", but at the offsets of its checkpoint they now say "
              + (floor == Bound.UNKNOWN_YET ? "nothing" : Shown.time(floor))
              + ". Their cuts were folded since, behind the queries that are registered there. This one is not: its user may"
              + " not write there, or its registration was removed. Start it with a new checkpoint; with the right to"
              + " register, the next fold waits for it.");
    }
  }

  /** The run of the query has ended. */
  void close() {
    ids.values().forEach(TopicIds::close);
  }
}

package sparkrowtime.query;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.function.ToLongFunction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.runtime.MultipleWatermarkPolicy;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.bounds.Bound;

/**
 * Replaces Spark's own tracker: the query's watermark follows the bounds. Spark calls {@link
 * #currentWatermark} in the query's thread right after latestOffset, and writes the result to the offset
 * log with that batch. It calls {@link #updateWatermark} when a batch has run.
 *
 * <p>Law: the watermark never falls.
 */
final class BoundTracker extends WatermarkTracker {
  private final WatermarkNodes nodes;
  private final TopicBatch topics;
  private final LateBatch late;
  private ToLongFunction<SparkDataStream> floors = stream -> Bound.UNKNOWN_YET;
  private long currentMs;

  /**
   * @param topics the topics with bounds beside them; their floor is known when the ends of all sources are
   */
  BoundTracker(LogicalPlan plan, WatermarkTracker replaced, TopicBatch topics, LateBatch late) {
    super(MultipleWatermarkPolicy.apply("min"), plan);
    this.topics = topics;
    this.late = late;
    this.nodes = new WatermarkNodes(plan);
    this.currentMs = replaced.currentWatermark();
  }

  /** A stream's bound has moved. */
  synchronized void advance(ToLongFunction<SparkDataStream> to) {
    floors = to;
    currentMs = Math.max(currentMs, nodes.weakest(floors, fromRows()));
  }

  @Override
  public synchronized void updateWatermark(SparkPlan executed) {
    super.updateWatermark(executed);
    late.ran();
    advance(floors);
  }

  private Map<UUID, Long> fromRows() {
    Map<UUID, Long> watermarks = new HashMap<>();
    CollectionConverters.asJava(watermarkMap())
        .forEach((id, ms) -> watermarks.put(id, ms.isDefined() ? (Long) ((Option<?>) ms).get() : 0L));
    return watermarks;
  }

  @Override
  public synchronized void setWatermark(long ms) {
    currentMs = ms;
  }

  @Override
  public synchronized long currentWatermark() {
    if (!topics.isEmpty()) {
      topics.requireForward();
      advance(floors);
    }
    return currentMs;
  }

  WatermarkNodes nodes() {
    return nodes;
  }
}

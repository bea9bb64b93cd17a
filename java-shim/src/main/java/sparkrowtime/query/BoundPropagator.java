package sparkrowtime.query;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.WatermarkPropagator;
import sparkrowtime.bounds.WholeWindows;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * Replaces Spark's own propagator, and gives each stateful operator the watermark that suits it. Spark
 * calls {@link #propagate} in the query's thread when it plans a batch: for the batch before, for the
 * batch itself, and once for a tentative next batch. Then it asks for the watermark of each operator.
 *
 * <p>Law: windows get W, since later rows fall into windows that end after it. Operators on a raw time
 * column, to which a row at W itself is late, get the largest ms below the floor. Both are functions of
 * the batch's offsets and watermark as they are in the offset log.
 */
final class BoundPropagator implements WatermarkPropagator {
  private final BoundedQuery query;
  private final OutputBounds output;
  private final WholeWindows whole;
  private final StateAdvice advice = new StateAdvice();
  private final TreeMap<Long, Map<Long, Long>> inputs = new TreeMap<>();
  private Map<Long, JoinSides> sides = Map.of();
  private boolean compared;

  BoundPropagator(BoundedQuery query) {
    this.query = query;
    this.output = new OutputBounds(query);
    this.whole = new WholeWindows(query.spark().logicalPlan());
  }

  BoundedQuery query() {
    return query;
  }

  CommittedBound committed() {
    return output.committed();
  }

  @Override
  public void propagate(long batchId, SparkPlan plan, long watermarkMs) {
    if (batchId >= 0) {
      ShimMismatch.guarded(() -> visit(batchId, plan, watermarkMs));
    }
  }

  private void visit(long batchId, SparkPlan plan, long watermarkMs) {
    var floors = query.floorsOf(batchId);
    if (query.isCurrent(batchId) && plan.exists(Scala.function(node -> node instanceof StateStoreWriter))) {
      RefuseEarlyTimes.check(query.nodes(), query.floorsOf(batchId - 1), query.seenIn(batchId));
      compare(watermarkMs);
    }
    long floor = query.nodes().weakestFloor(floors);
    Propagation batch =
        new Propagation(watermarkMs, query.nodes().rawLimit(floors), floor, query.nodes().byId(floors), whole);
    batch.run(plan);
    inputs.put(batchId, batch.inputs());
    if (query.isCurrent(batchId)) {
      sides = batch.sides();
      advice.give(plan, sides, query.cores());
      output.publishInput(floor);
      output.publish(batchId, plan, batch);
    }
  }

  private void compare(long watermarkMs) {
    if (!compared) {
      RefuseHigherWatermark.check(query, watermarkMs);
      compared = true;
    }
  }

  /** The eviction of a join in the batch that is being planned; null for other operators. */
  JoinSides sidesOf(long operator) {
    return sides.get(operator);
  }

  @Override
  public long getInputWatermarkForLateEvents(long batchId, long operator) {
    return batchId == 0 ? 0 : input(batchId - 1, operator);
  }

  @Override
  public long getInputWatermarkForEviction(long batchId, long operator) {
    return input(batchId, operator);
  }

  private long input(long batchId, long operator) {
    if (batchId < 0) {
      return 0;
    }
    Long input = inputs.getOrDefault(batchId, Map.of()).get(operator);
    if (input == null) {
      throw new ShimMismatch("propagate to have seen operator " + operator + " in batch " + batchId, null);
    }
    return input;
  }

  @Override
  public void purge(long batchId) {
    inputs.headMap(batchId, true).clear();
  }
}

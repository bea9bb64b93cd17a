package sparkrowtime.query;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.OutputMode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Publishes the promise about the rows of later batches to sinks and tasks, in the local property {@value
 * #PROPERTY}: a JSON object from output column ("rowtime", "window.end", see {@link OutputPaths}) to floor
 * in microseconds. It is set in the query's thread when a batch is planned, also for a batch without rows.
 * Spark passes it to the tasks of that batch.
 *
 * <p>Law: the promise holds after the batch has been written, whatever comes later. It is {} if nothing is
 * promised.
 */
final class OutputBounds {
  private static final String PROPERTY = "rowtime.outputBounds";
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  private final BoundedQuery query;
  private final Definitions definitions;
  private final QueryStatus status;
  private final CommittedBound committed;
  private boolean warned;

  OutputBounds(BoundedQuery query) {
    this.query = query;
    this.definitions = new Definitions(query.spark().logicalPlan());
    this.status = new QueryStatus(query, definitions);
    this.committed = new CommittedBound(query);
  }

  CommittedBound committed() {
    return committed;
  }

  void publish(long batchId, SparkPlan plan, Propagation batch) {
    MicroBatchExecution spark = query.spark();
    // Complete mode writes all results again in every batch, so nothing is promised.
    boolean again = spark.outputMode().equals(OutputMode.Complete());
    PlanBounds bounds = new PlanBounds(definitions, query.floorsOf(batchId), batch.evicted(), query.seenIn(batchId));
    Map<String, Long> floors =
        again ? Map.of() : floors(spark.logicalPlan().children().apply(0), bounds);
    set(PROPERTY, OffsetJson.write(floors));
    String end = end();
    set("rowtime.batchEnd", end);
    String told = status.of(batchId, plan, batch, floors, bounds);
    committed.publish(batchId, floors, end, told);
    query.reported(told);
    set("rowtime.account", told);
    set("rowtime.query", spark.id().toString()); // a query that a foreachBatch starts inherits all these
  }

  private void set(String property, String value) {
    query.spark().sparkSessionForStream().sparkContext().setLocalProperty(property, value);
  }

  /**
   * The end offsets of the batch. They are the same when the batch is run again, but not in a copy of the
   * checkpoint.
   */
  private String end() {
    return Scala.list(query.spark().getLatestExecutionContext().endOffsets().values().toSeq()).stream()
        .map(Offset::json)
        .sorted()
        .collect(Collectors.joining("\n"));
  }

  /** Publishes the floor below which operators on raw times have received all rows, in microseconds. */
  void publishInput(long floor) {
    set("rowtime.inputFloor", floor == Bound.UNKNOWN_YET ? null : Long.toString(floor));
  }

  private Map<String, Long> floors(LogicalPlan written, PlanBounds bounds) {
    List<Attribute> output = Scala.list(written.output());
    Columns columns = bounds.of(written);
    output.forEach(a -> warnIfLost(a, columns, written, bounds));
    return OutputPaths.floors(output, columns);
  }

  /** Warns once if the output's rowtime has no bound, and cannot get one when operators below it evict something. */
  private void warnIfLost(Attribute a, Columns columns, LogicalPlan written, PlanBounds bounds) {
    if (!warned && Rowtime.isRowtime(a) && columns.get(a) == null && !canHaveBound(a, written)) {
      warned = true;
      LOG.warn(
          "The output column {} carries no bound: it comes from {}, which is not known to keep the"
              + " order of time. Consumers will not learn how far the output is complete.",
          a.name(),
          Origin.ofLoss(a, written, bounds::of));
    }
  }

  private boolean canHaveBound(Attribute a, LogicalPlan written) {
    return PlanBounds.possible(definitions).of(written).get(a) != null;
  }
}

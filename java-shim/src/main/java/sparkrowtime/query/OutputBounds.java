package sparkrowtime.query;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.OutputMode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.Evictions;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.source.OffsetJson;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Tells sinks and tasks what is promised about the rows of later batches: the local property {@value
 * #PROPERTY}, a JSON object from output column ("rowtime", "window.end", see {@link OutputPaths}) to floor in
 * microseconds.
 * Set in the query's thread when a batch is planned, also for one without rows; Spark hands it to
 * the tasks of that batch.
 *
 * <p>Law: valid after the batch has been written, whatever comes later; {} where nothing is promised.
 */
final class OutputBounds {
  private static final String PROPERTY = "rowtime.outputBounds";
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  private final BoundedQuery query;
  private final Definitions definitions;
  private boolean told;

  OutputBounds(BoundedQuery query) {
    this.query = query;
    this.definitions = new Definitions(query.spark().logicalPlan());
  }

  void publish(long batchId, Evictions evicted) {
    MicroBatchExecution spark = query.spark();
    // Complete mode writes all results again in every batch.
    boolean again = spark.outputMode().equals(OutputMode.Complete());
    PlanBounds bounds = new PlanBounds(definitions, query.floorsOf(batchId), evicted, query.seenIn(batchId));
    Map<String, Long> floors =
        again ? Map.of() : floors(spark.logicalPlan().children().apply(0), bounds);
    tell(PROPERTY, OffsetJson.write(floors));
    tell("rowtime.batchEnd", end());
    tell("rowtime.query", spark.id().toString());  // a query that a foreachBatch starts inherits all these
  }

  private void tell(String property, String value) {
    query.spark().sparkSessionForStream().sparkContext().setLocalProperty(property, value);
  }

  /** Where the batch ends in its sources: the same when it is run again, not so in a copy of the checkpoint. */
  private String end() {
    return Scala.list(query.spark().getLatestExecutionContext().endOffsets().values().toSeq()).stream()
        .map(Offset::json)
        .sorted()
        .collect(Collectors.joining("\n"));
  }

  /** The floor below which operators on raw time have seen everything, to the microsecond. */
  void publishInput(long floor) {
    tell("rowtime.inputFloor", floor == Bound.UNKNOWN_YET ? null : Long.toString(floor));
  }

  private Map<String, Long> floors(LogicalPlan written, PlanBounds bounds) {
    List<Attribute> output = Scala.list(written.output());
    Columns columns = bounds.of(written);
    output.forEach(a -> tellIfLost(a, columns, written, bounds));
    return OutputPaths.floors(output, columns);
  }

  /** An aggregation's or a join's column may still get its bound, when the watermark is known. */
  private void tellIfLost(Attribute a, Columns columns, LogicalPlan written, PlanBounds bounds) {
    if (!told && Rowtime.isRowtime(a) && columns.get(a) == null && !Origin.isKept(a, written)) {
      told = true;
      LOG.warn(
          "The output column {} carries no bound: it comes from {}, which is not known to keep the"
              + " order of time. Consumers will not learn how far the output is complete.",
          a.name(),
          Origin.of(a, written, plan -> bounds.of(plan).get(a) != null));
    }
  }
}

package sparkrowtime;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.OutputMode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells sinks and tasks what is promised about the rows of later batches: the local property {@value
 * #PROPERTY}, a JSON object from output column ("rowtime", "window.end") to floor in microseconds.
 * Set in the query's thread when a batch is planned, also for one without rows; Spark hands it to
 * the tasks of that batch.
 *
 * <p>Law: valid after the batch has been written, whatever comes later; {} where nothing is promised.
 */
final class OutputBounds {
  static final String PROPERTY = "rowtime.outputBounds";
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");
  private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

  private OutputBounds() {}

  static void publish(BoundedQuery query, long batchId, Evictions evicted) {
    MicroBatchExecution execution = query.spark();
    // Complete mode writes all results again in every batch.
    Map<String, Long> floors =
        execution.outputMode().equals(OutputMode.Complete())
            ? Map.of()
            : floors(execution.logicalPlan(), new PlanBounds(query.floorsOf(batchId), evicted));
    execution.sparkSessionForStream().sparkContext().setLocalProperty(PROPERTY, OffsetJson.write(floors));
  }

  private static Map<String, Long> floors(LogicalPlan written, PlanBounds bounds) {
    LogicalPlan query = written.children().apply(0);
    Columns columns = bounds.of(query);
    Map<String, Long> floors = new TreeMap<>();
    for (Attribute a : Scala.list(query.output())) {
      for (String field : Columns.FIELDS) {
        Bound bound = columns.get(a.exprId(), field);
        if (bound != null && bound.isPromise()) {
          floors.merge(field.isEmpty() ? a.name() : a.name() + "." + field, bound.floor(), Math::min);
        }
      }
      if (Rowtime.isRowtime(a) && columns.get(a) == null) {
        tell(a, query);
      }
    }
    return floors;
  }

  private static void tell(Attribute rowtime, LogicalPlan query) {
    if (TOLD.add(query.toString())) {
      LOG.warn("no bound for {}", rowtime);
    }
  }
}

package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandasWithState;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsWithState;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithState;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.Shown;

/**
 * The times by which a query keeps its state, as they were when its checkpoint was created: the sizes and
 * steps of windows, and the expressions that compute a time, from the stream's own time on: the unit of
 * date_trunc, the interval of a shift. Spark's checkpoint does not contain them, and a query that is started
 * again with other ones would mix the old times in its state with new ones. They are in a file beside the
 * offset log, written by the first run that finds none. Called once a run, in the query's thread.
 */
final class CheckpointedTimes {
  private static final String FILE = "rowtime-times.json";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** Stands for a column that is not computed in the query. */
  static final String AS_READ = "time";

  private CheckpointedTimes() {}

  static void check(MicroBatchExecution query) {
    LogicalPlan plan = query.logicalPlan();
    List<String> now = in(plan);
    CheckpointFile file = new CheckpointFile(query, FILE);
    boolean isNew = query.commitLog().getLatest().isEmpty();  // there is no state yet
    try {
      refuseOther(MAPPER.readValue(file.first(isNew, MAPPER.writeValueAsString(now)), List.class), now, file);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is not the JSON list that a query writes into it.", e);
    }
  }

  private static void refuseOther(List<?> before, List<String> now, CheckpointFile file) {
    if (!before.equals(now)) {
      throw new IllegalArgumentException(
          "This query keeps its state by " + shown(now) + ", but its checkpoint was begun with " + shown(before)
              + ": the state has the old times, and results of both would be mixed. Set the old sizes and"
              + " expressions back, or start with a new checkpoint and a new output. (Of a window its size and step are"
              + " given. The file " + file + " has them in microseconds.)");
    }
  }

  private static String shown(List<?> times) {
    return times.isEmpty() ? "no computed time" : Shown.intervals(times.toString());
  }

  private static List<String> in(LogicalPlan plan) {
    Derivations derived = new Derivations(plan, column -> AS_READ, false);
    List<LogicalPlan> nodes = Scala.list(plan.collect(Scala.only(LogicalPlan.class)));
    return nodes.stream()
        .filter(LogicalPlan::isStreaming)
        .flatMap(CheckpointedTimes::keys)
        .flatMap(e -> Scala.list(e.references().toSeq()).stream())
        .filter(Rowtime::isWatermarked)
        .flatMap(column -> derived.texts(column, Columns.WHOLE).stream())
        .filter(text -> !text.equals(AS_READ))
        .sorted()
        .toList();
  }

  private static Stream<Expression> keys(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      return Scala.list(aggregate.groupingExpressions()).stream();
    } else if (node instanceof Deduplicate deduplicate) {
      return Scala.list(deduplicate.keys()).stream().map(a -> (Expression) a);
    } else if (PassingOperators.isDistinct(node)) {
      return output(node);
    } else if (node instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      return Stream.ofNullable(Scala.orNull(join.condition()));
    }
    return keepsByTime(node) ? Scala.list(node.children()).stream().flatMap(CheckpointedTimes::output) : Stream.of();
  }

  /** Operators whose state has times of its input, whatever their columns are. */
  private static boolean keepsByTime(LogicalPlan node) {
    return node instanceof DeduplicateWithinWatermark
        || node instanceof FlatMapGroupsWithState
        || node instanceof FlatMapGroupsInPandasWithState
        || node instanceof TransformWithState
        || node instanceof TransformWithStateInPySpark;
  }

  private static Stream<Expression> output(LogicalPlan plan) {
    return Scala.list(plan.output()).stream().map(a -> (Expression) a);
  }
}

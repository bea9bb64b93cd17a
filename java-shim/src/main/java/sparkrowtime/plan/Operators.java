package sparkrowtime.plan;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.SessionWindowStateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreSaveExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/** By which kind of time each of Spark's stateful operators keeps its state. */
public final class Operators {
  private Operators() {}

  /**
   * True if all watermarked columns of an operator are windows, whose end it compares with W. Sessions do
   * not count: a row at exactly the end of a session still belongs to it.
   */
  public static boolean evictsWindows(StateStoreWriter operator) {
    boolean known =
        operator instanceof StateStoreSaveExec
            || operator instanceof StreamingDeduplicateExec
            || operator instanceof StreamingSymmetricHashJoinExec;
    List<Attribute> times = times((SparkPlan) operator);
    return known && !times.isEmpty() && times.stream().allMatch(a -> a.dataType() instanceof StructType);
  }

  /** The watermarked columns that an operator reads. */
  public static List<Attribute> times(SparkPlan operator) {
    return Scala.list(operator.children()).stream()
        .flatMap(child -> Scala.list(child.output()).stream())
        .filter(Rowtime::isWatermarked)
        .toList();
  }

  /**
   * True if later results can be as early as the operator's own W, and not only as the floor: the operator
   * keeps rows by their raw time and outputs them with that time, or a user-defined function does.
   */
  public static boolean holdsRows(StateStoreWriter operator) {
    return !(operator instanceof StateStoreSaveExec
        || operator instanceof StreamingDeduplicateExec
        || operator instanceof StreamingDeduplicateWithinWatermarkExec
        || operator instanceof StreamingSymmetricHashJoinExec);
  }

  /** True for a state function of this library, which outputs each row once the floor is above it. */
  public static boolean follows(SparkPlan operator) {
    return Scala.list(operator.output()).stream().anyMatch(PackedRows::isChunk);
  }

  /** When an operator outputs a row, for statuses: {@code at once}, {@code complete}, or {@code unknown}. */
  public static String emits(StateStoreWriter operator) {
    boolean passes =
        operator instanceof StreamingDeduplicateExec || operator instanceof StreamingDeduplicateWithinWatermarkExec;
    boolean known =
        operator instanceof StateStoreSaveExec
            || operator instanceof StreamingSymmetricHashJoinExec
            || follows((SparkPlan) operator);
    return passes ? "at once" : known ? "complete" : "unknown";
  }

  public static boolean isAggregation(StateStoreWriter operator) {
    return operator instanceof StateStoreSaveExec
        || operator instanceof SessionWindowStateStoreSaveExec;
  }
}

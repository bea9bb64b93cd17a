package sparkrowtime.query;

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
import sparkrowtime.analysis.PackedRows;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/** What kind of time each of Spark's stateful operators keeps its state by. */
public final class Operators {
  private Operators() {}

  /**
   * True where all of an operator's watermarked columns are windows, whose end it compares with W.
   * Sessions are not among them: a row at exactly the end of a session still belongs to it.
   */
  static boolean evictsWindows(StateStoreWriter operator) {
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
   * True where later results can be as early as the operator's own W, not only as the floor: it
   * keeps rows by a raw time of theirs and gives them out with that time, or code of the user's does.
   */
  static boolean holdsRows(StateStoreWriter operator) {
    return !(operator instanceof StateStoreSaveExec
        || operator instanceof StreamingDeduplicateExec
        || operator instanceof StreamingDeduplicateWithinWatermarkExec
        || operator instanceof StreamingSymmetricHashJoinExec);
  }

  /** True for a state function of this library, which gives out each row once the floor is above it. */
  static boolean follows(SparkPlan operator) {
    return Scala.list(operator.output()).stream().anyMatch(PackedRows::isChunk);
  }

  static boolean isAggregation(StateStoreWriter operator) {
    return operator instanceof StateStoreSaveExec
        || operator instanceof SessionWindowStateStoreSaveExec;
  }
}

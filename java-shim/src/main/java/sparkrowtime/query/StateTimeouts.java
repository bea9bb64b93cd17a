package sparkrowtime.query;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeTimeout$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec;
import sparkrowtime.support.PickledCall;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The physical rule for applyInPandasWithState with event-time timeouts. A call for rows sees the watermark
 * of the batch before; a call for a timeout sees that of this batch, by which it is due. Spark has one
 * watermark for both. Spark's own watermark comes from the rows of earlier batches and is never above the
 * rows of the batch. A bound can be, and then {@code setTimeoutTimestamp(time of the last row + gap)} would
 * be refused because that time has passed. So the function that the operator calls is wrapped in Python.
 *
 * <p>Law: no call for rows sees a watermark above its rows. A timeout fires in the first batch whose
 * watermark is above it. Plans outside a running query with bounds do not change.
 */
public final class StateTimeouts extends PlanRule {
  @Override
  SparkPlan rewrite(SparkPlan node) {
    boolean concerns =
        node instanceof FlatMapGroupsInPandasWithStateExec exec
            && exec.timeoutConf().equals(EventTimeTimeout$.MODULE$)
            && exec.eventTimeWatermarkForLateEvents().isDefined();
    return concerns && BoundedQuery.ofThisThread() != null ? wrapped((FlatMapGroupsInPandasWithStateExec) node) : node;
  }

  private static SparkPlan wrapped(FlatMapGroupsInPandasWithStateExec exec) {
    if (!(exec.functionExpr() instanceof PythonUDF udf) || !(udf.func() instanceof SimplePythonFunction function)) {
      throw new ShimMismatch("a Python function in applyInPandasWithState, not " + exec.functionExpr(), null);
    }
    String before = exec.eventTimeWatermarkForLateEvents().get().toString();
    return Scala.copy(exec, Expression.class, Scala.copy(udf, PythonFunction.class, withWatermark(before, function)));
  }

  private static PythonFunction withWatermark(String watermarkMs, SimplePythonFunction function) {
    byte[] command =
        PickledCall.of(
            "spark_rowtime.spark.state_calls",
            "load_with_watermark",
            bytes(Scala.list(function.command())),
            watermarkMs.getBytes(StandardCharsets.UTF_8));
    return new SimplePythonFunction(
        command, function.envVars(), function.pythonIncludes(), function.pythonExec(), function.pythonVer(),
        function.broadcastVars(), function.accumulator());
  }

  private static byte[] bytes(List<Object> command) {
    byte[] bytes = new byte[command.size()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (Byte) command.get(i);
    }
    return bytes;
  }
}

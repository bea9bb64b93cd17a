package sparkrowtime.analysis;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonFunction;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataType;
import sparkrowtime.support.PickledCall;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * What the tasks of an ASOF JOIN call: one of three functions of this library, which a pickle makes of the type of its
 * result and its arguments. Law: {@link #arguments} of a node are those with which its function was made.
 */
enum AsOfFunction {
  PACKED("packed", 207),
  JOINED("joined", 211),
  UNPACKED("unpacked", 207);

  private static final String MODULE = "spark_rowtime.operators.asof_sql";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final String function;

  /** Spark's number of mapInArrow, or of transformWithStateInPandas. */
  private final int kind;

  AsOfFunction(String function, int kind) {
    this.function = function;
    this.kind = kind;
  }

  static ObjectNode noArguments() {
    return MAPPER.createObjectNode();
  }

  /** The function over these columns. */
  PythonUDF of(SparkSession session, DataType type, ObjectNode arguments, List<Attribute> columns) {
    PythonFunction python = session.sessionState().dataSourceManager()
        .lookupDataSource(Rowtime.SOURCE).createPythonFunction(pickle(type, arguments));
    return over(python, type, columns);
  }

  /** The function of {@code made} with another type, other arguments and other columns. */
  PythonUDF instead(PythonUDF made, DataType type, ObjectNode arguments, List<Attribute> columns) {
    SimplePythonFunction old = (SimplePythonFunction) made.func();
    return over(
        new SimplePythonFunction(
            pickle(type, arguments), old.envVars(), old.pythonIncludes(), old.pythonExec(), old.pythonVer(),
            old.broadcastVars(), old.accumulator()),
        type,
        columns);
  }

  private PythonUDF over(PythonFunction python, DataType type, List<Attribute> columns) {
    List<Expression> given = new ArrayList<>(columns);
    return new PythonUDF(
        function, python, type, Scala.seq(given), kind, true, NamedExpression.newExprId());
  }

  private byte[] pickle(DataType type, ObjectNode arguments) {
    return PickledCall.of(MODULE, function, utf8(type.json()), utf8(arguments.toString()));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** The arguments of this function in the node that calls it; null in other nodes. */
  ObjectNode arguments(LogicalPlan node) {
    PythonUDF called = called(node);
    String text = called == null ? null : PickledCall.text(bytes(called), MODULE, function);
    try {
      return text == null ? null : (ObjectNode) MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(text, e);
    }
  }

  /** The function of Python that a node calls with its rows; null if there is none. */
  static PythonUDF called(LogicalPlan node) {
    Expression function = node instanceof MapInArrow maps
        ? maps.functionExpr()
        : node instanceof TransformWithStateInPySpark keeps ? keeps.functionExpr() : null;
    return function instanceof PythonUDF udf && udf.func() instanceof SimplePythonFunction ? udf : null;
  }

  private static byte[] bytes(PythonUDF called) {
    List<Object> command = Scala.list(called.func().command());
    byte[] bytes = new byte[command.size()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (Byte) command.get(i);
    }
    return bytes;
  }
}

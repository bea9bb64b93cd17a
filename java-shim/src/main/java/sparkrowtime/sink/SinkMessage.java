package sparkrowtime.sink;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.v2.python.PythonWriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.support.ArrowRows;
import sparkrowtime.support.PickledCall;

/**
 * A task's message to the commit, which runs in Python: a pickled call of
 * {@code spark_rowtime.spark.task_output.carried} with the rows, as an Arrow stream, and the local
 * properties that identify the batch.
 */
final class SinkMessage {
  /** The properties that spark_rowtime/spark/query_batch.py and output_bound.py read in a task. */
  private static final List<String> PROPERTIES =
      List.of(
          "sql.streaming.queryId",
          "spark.jobGroup.id",
          "streaming.sql.batchId",
          "rowtime.query",
          "rowtime.batchEnd",
          "rowtime.outputBounds");

  private static final String QUERY_STATUS = "rowtime.account";

  private SinkMessage() {}

  static WriterCommitMessage of(List<InternalRow> rows, StructType schema) {
    return new PythonWriterCommitMessage(
        PickledCall.of("spark_rowtime.spark.task_output", "carried", ArrowRows.stream(rows, schema), properties()));
  }

  private static byte[] properties() {
    Map<String, String> values = new LinkedHashMap<>();
    for (String property : PROPERTIES) {
      values.put(property, TaskContext.get().getLocalProperty(property));
    }
    if (TaskContext.getPartitionId() == 0) { // once is enough
      values.put(QUERY_STATUS, TaskContext.get().getLocalProperty(QUERY_STATUS));
    }
    return OffsetJson.write(values).getBytes(StandardCharsets.UTF_8);
  }
}

package sparkrowtime.sink;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonBatchWriterFactory;

/** Makes the tasks of a rowtime sink. Sent to the executors. */
record SinkTasks(PythonBatchWriterFactory python) implements DataWriterFactory {
  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    return new SinkTask(() -> python.createWriter(partition, task), python.inputSchema());
  }
}

package sparkrowtime;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.types.StructType;

/** Makes the writer of each task of a rowtime sink. Sent to the executors. */
record SinkTasks(DataWriterFactory python, StructType schema) implements DataWriterFactory {
  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    return new SinkTask(() -> python.createWriter(partition, task), schema);
  }
}

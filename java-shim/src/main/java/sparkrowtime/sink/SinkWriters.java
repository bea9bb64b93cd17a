package sparkrowtime.sink;

import java.lang.reflect.Field;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.datasources.v2.python.PythonBatchWriterFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingWrite;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.ShimMismatch;

/**
 * The physical rule for rowtime sinks. With it, a query with bounds asks Python once a run, and not in
 * every batch, for the writers of its tasks; and only tasks with many rows use a Python worker.
 *
 * <p>Law: the writers do not depend on the batch. They consist of path, columns and options; a task
 * takes the batch from its local properties, and opens the stream itself.
 */
public final class SinkWriters extends WriteRule {
  /** If false, all rows go through Python. For tests that compare the two ways. */
  private static final String SWITCH = "spark.rowtime.nativeWrite";

  @Override
  boolean concerns(StreamingWrite write) {
    return write instanceof PythonStreamingWrite python && Rowtime.SOURCE.equalsIgnoreCase(shortName(python));
  }

  @Override
  BatchWrite replaced(MicroBatchWrite batch, BoundedQuery query) {
    return new Once(batch, query);
  }

  private static String shortName(PythonStreamingWrite write) {
    try {
      Field field = PythonStreamingWrite.class.getDeclaredField("shortName");
      field.setAccessible(true);
      return (String) field.get(write);
    } catch (ReflectiveOperationException | RuntimeException e) {
      throw new ShimMismatch("a field PythonStreamingWrite.shortName", e);
    }
  }

  /** The write of one batch, with the writers of the run. */
  private static final class Once extends PassingWrite {
    Once(MicroBatchWrite batch, BoundedQuery query) {
      super(batch, query);
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      return query.writers(() -> tasks(batch.writeSupport().createStreamingWriterFactory(info)));
    }

    private static DataWriterFactory tasks(StreamingDataWriterFactory made) {
      if (!(made instanceof PythonBatchWriterFactory python)) {
        throw new ShimMismatch("a PythonBatchWriterFactory of a Python sink, found " + made.getClass(), null);
      }
      return Rowtime.isOn(SWITCH) ? new SinkTasks(python) : python;
    }
  }
}

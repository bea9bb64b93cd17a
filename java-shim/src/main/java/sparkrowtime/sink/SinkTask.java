package sparkrowtime.sink;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * One task of a rowtime sink. A few rows travel to the commit with the task's message. Many rows are
 * staged by a Python worker; a task with few rows does not start one. Used by the task's thread.
 *
 * <p>Law: both ways land the same rows. Which way is taken is a function of the rows and of the plan.
 */
final class SinkTask implements DataWriter<InternalRow> {
  /** The most bytes of rows in one task's message. */
  private static final long TASK = 128 << 10;

  /** The most bytes of rows in all messages of a batch, since they go through the driver. */
  private static final long BATCH = 32 << 20;

  private final Supplier<DataWriter<InternalRow>> python;
  private final StructType schema;
  private final List<InternalRow> few = new ArrayList<>();
  private DataWriter<InternalRow> many;

  SinkTask(Supplier<DataWriter<InternalRow>> python, StructType schema) {
    this.python = python;
    this.schema = schema;
  }

  /** Called once, with all rows of the task. */
  @Override
  public void writeAll(Iterator<InternalRow> rows) throws IOException {
    if (!gather(rows)) {
      many = python.get();
      many.writeAll(Scala.chained(few.iterator(), rows));
    }
  }

  /** Collects rows in {@link #few}; true if these are all rows, and stay below the limits. */
  private boolean gather(Iterator<InternalRow> rows) {
    long left = Math.min(TASK, BATCH / TaskContext.get().numPartitions());
    while (left > 0 && rows.hasNext()) {
      InternalRow row = rows.next().copy();
      left -= row instanceof UnsafeRow unsafe ? unsafe.getSizeInBytes() : left;
      few.add(row);
    }
    return left > 0;
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    return many != null ? many.commit() : ShimMismatch.guarded(() -> SinkMessage.of(few, schema));
  }

  @Override
  public void abort() throws IOException {
    if (many != null) {
      many.abort();
    }
  }

  @Override
  public void close() throws IOException {
    if (many != null) {
      many.close();
    }
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return many != null ? many.currentMetricsValues() : new CustomTaskMetric[0];
  }

  @Override
  public void write(InternalRow row) {
    throw new UnsupportedOperationException("Spark hands a task's rows to writeAll");
  }
}

package sparkrowtime;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One task of a rowtime sink: few rows travel to the commit with the task's message, many are put
 * down by a Python worker, which none is asked for otherwise. Used by the task's thread.
 *
 * <p>Law: both ways land the same rows; the choice is seen in nothing but speed.
 */
final class SinkTask implements DataWriter<InternalRow> {
  /** So many bytes of rows are no longer few. */
  private static final long FEW = 128 << 10;

  private final Supplier<DataWriter<InternalRow>> python;
  private final StructType schema;
  private final List<InternalRow> few = new ArrayList<>();
  private DataWriter<InternalRow> many;

  SinkTask(Supplier<DataWriter<InternalRow>> python, StructType schema) {
    this.python = python;
    this.schema = schema;
  }

  /** Once, with all rows of the task. */
  @Override
  public void writeAll(Iterator<InternalRow> rows) throws IOException {
    for (long bytes = 0; bytes < FEW && rows.hasNext(); ) {
      InternalRow row = rows.next().copy();
      bytes += row instanceof UnsafeRow unsafe ? unsafe.getSizeInBytes() : FEW;
      few.add(row);
    }
    if (rows.hasNext()) {
      many = python.get();
      many.writeAll(CollectionConverters.asJava(
          CollectionConverters.asScala(few.iterator()).concat(() -> CollectionConverters.asScala(rows))));
    }
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

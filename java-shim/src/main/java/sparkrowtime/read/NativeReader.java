package sparkrowtime.read;

import java.util.Iterator;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import sparkrowtime.support.ShimMismatch;

/**
 * Reads a partition; each train is one batch. Used by one task, in its thread. Spark closes it when the
 * task completes, also when it fails.
 *
 * <p>Law: at most one train at a time is in memory off the heap, and none after {@link #close}.
 */
final class NativeReader implements PartitionReader<ColumnarBatch> {
  private final Iterator<NativeTrain> trains;
  private final Schema schema;
  private final NativeFiles files;
  private BufferAllocator allocator;
  private ColumnarBatch batch;

  NativeReader(NativePartition partition, Configuration hadoop) {
    this.files = new NativeFiles(hadoop);
    this.trains = partition.trains().iterator();
    this.schema = NativePlan.schema(partition.schema());
  }

  @Override
  public boolean next() {
    try {
      do {
        release();
        if (!trains.hasNext()) {
          return false;
        }
        batch = NativeBatch.of(trains.next(), schema, files, allocator());
      } while (batch.numRows() == 0);
      return true;
    } catch (LinkageError e) {
      throw new ShimMismatch("Arrow's MessageSerializer, VectorLoader and vectors as in Arrow 19", e);
    }
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() {
    files.close();
    release();
    if (allocator != null) {
      allocator.close();
      allocator = null;
    }
  }

  private void release() {
    if (batch != null) {
      batch.close();
      batch = null;
    }
  }

  /** Made at the first train, since Spark only closes a reader that it has asked for a batch. */
  private BufferAllocator allocator() {
    if (allocator == null) {
      allocator = ArrowUtils.rootAllocator().newChildAllocator("rowtime", 0, Long.MAX_VALUE);
    }
    return allocator;
  }
}

package sparkrowtime.read;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Makes the readers for both kinds of partition: native ones are read in columns, Spark's Python ones as
 * Spark reads them. Serialized into each task.
 *
 * @param python null if all partitions are native
 * @param hadoop the configuration of Hadoop's file systems; null if no train is in one of these
 */
record NativeReaders(PartitionReaderFactory python, SerializableConfiguration hadoop)
    implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return partition instanceof NativePartition;
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new NativeReader((NativePartition) partition, hadoop == null ? null : hadoop.value());
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return python.createReader(partition);
  }
}

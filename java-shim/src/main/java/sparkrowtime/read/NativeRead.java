package sparkrowtime.read;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.source.BoundedStream;
import sparkrowtime.support.Rowtime;

/**
 * How the rows of a stream come into tasks: straight from its Arrow files where the Python side says
 * which, else through a Python worker. Used in the query's thread.
 *
 * <p>Law: both ways give the same rows in the same batches; the choice is seen in nothing but speed.
 */
public final class NativeRead {
  /** False: always through Python. For tests that compare the two. */
  private static final String SWITCH = "spark.rowtime.nativeRead";

  private final MicroBatchStream stream;
  private final StructType schema;
  private Offset from;
  private Offset to;
  private InputPartition[] partitions;
  private boolean isNative;

  public NativeRead(MicroBatchStream stream, StructType schema) {
    this.stream = stream;
    this.schema = schema;
  }

  /** Twice per batch that has something, for each copy of its plan; Python is asked once. */
  public InputPartition[] partitions(Offset start, Offset end) {
    if (!start.equals(from) || !end.equals(to)) {
      partitions = planned(start, end);
      from = start;
      to = end;
    }
    return partitions;
  }

  /** With the handshake in {@code start}. */
  private InputPartition[] planned(Offset start, Offset end) {
    NativePlan plan = Rowtime.isOn(SWITCH) ? plan(start, end) : null;
    isNative = plan != null && plan.gives(schema);
    return isNative ? plan.partitions() : stream.planInputPartitions(start, end);
  }

  /** Once per batch, after {@link #partitions}; Python is not asked for its reader without need. */
  public PartitionReaderFactory readers() {
    return new NativeReaders(isNative ? null : stream.createReaderFactory());
  }

  private NativePlan plan(Offset start, Offset end) {
    int parallelism = SparkSession.active().sparkContext().defaultParallelism();
    String question = NativePlan.question(start.json(), end.json(), parallelism);
    return new NativePlan(BoundedStream.ask(stream, question).json());
  }
}

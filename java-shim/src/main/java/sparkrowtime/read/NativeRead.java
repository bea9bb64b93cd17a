package sparkrowtime.read;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import sparkrowtime.python.Questions;
import sparkrowtime.support.Rowtime;

/**
 * Plans how tasks read the rows of a stream: directly from its Arrow files and objects if the Python side
 * can name them and Java can read them, otherwise through a Python worker. Used in the query's thread.
 *
 * <p>Law: both ways give the same rows in the same batches; they differ only in speed.
 */
public final class NativeRead {
  /** If false, rows are always read through Python. For tests that compare the two ways. */
  private static final String SWITCH = "spark.rowtime.nativeRead";

  private final MicroBatchStream stream;
  private final Questions questions;
  private final StructType schema;
  private Offset from;
  private Offset to;
  private InputPartition[] partitions;
  private boolean isNative;
  private Configuration hadoop;

  public NativeRead(MicroBatchStream stream, Questions questions, StructType schema) {
    this.stream = stream;
    this.questions = questions;
    this.schema = schema;
  }

  /** Spark calls this twice per batch with news, once for each copy of its plan. Python is asked once. */
  public InputPartition[] partitions(Offset start, Offset end) {
    if (!start.equals(from) || !end.equals(to)) {
      partitions = planned(start, end);
      from = start;
      to = end;
    }
    return partitions;
  }

  private InputPartition[] planned(Offset start, Offset end) {
    NativePlan plan = Rowtime.isOn(SWITCH) ? plan(start, end) : null;
    boolean asks = plan != null && plan.mayUseHadoop();
    hadoop = asks ? SparkSession.active().sessionState().newHadoopConf() : null;
    isNative = plan != null && plan.gives(schema, hadoop);
    return isNative ? plan.partitions() : questions.partitions(start, end);
  }

  /** Called once per batch, after {@link #partitions}. Asks Python for its reader only if it is needed. */
  public PartitionReaderFactory readers() {
    boolean usesHadoop = isNative && Arrays.stream(partitions).anyMatch(p -> ((NativePartition) p).usesHadoop());
    return new NativeReaders(
        isNative ? null : stream.createReaderFactory(), usesHadoop ? new SerializableConfiguration(hadoop) : null);
  }

  private NativePlan plan(Offset start, Offset end) {
    int parallelism = SparkSession.active().sparkContext().defaultParallelism();
    return new NativePlan(questions.plan(start, end, parallelism));
  }
}

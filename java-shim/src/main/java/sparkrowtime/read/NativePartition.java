package sparkrowtime.read;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads: some trains of a stream.
 *
 * @param schema the stream's Arrow schema as an encapsulated IPC message
 */
record NativePartition(byte[] schema, List<NativeTrain> trains) implements InputPartition {
  /** Whether a train is in an object that Hadoop reads. */
  boolean usesHadoop() {
    return trains.stream().anyMatch(NativeTrain::isInHadoop);
  }
}

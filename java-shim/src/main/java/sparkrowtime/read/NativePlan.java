package sparkrowtime.read;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * The answer of the Python side to the question which trains lie between two offsets: an object with "schema" and
 * "partitions", each a list of trains; it has neither if only Python can read the rows.
 */
final class NativePlan {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** Where a train has its bytes, if they travel with it. */
  private static final int CONTENT = 9;

  private final JsonNode answer;

  NativePlan(String answer) {
    this.answer = parse(answer);
  }

  /** Whether the answer has partitions, and its rows have exactly the type that Spark expects. */
  boolean gives(StructType expected, Configuration hadoop) {
    if (!answer.has("partitions") || !canBeRead(hadoop)) {
      return false;
    }
    StructType found = ArrowUtils.fromArrowSchema(schema(schema()));
    return found.catalogString().equals(expected.catalogString())
        && DataType.equalsStructurally(found, expected, false);
  }

  /** Whether Hadoop may have to read an object. */
  boolean mayUseHadoop() {
    for (JsonNode file : answer.path("files")) {
      if (NativeFiles.isInHadoop(file.textValue())) {
        return true;
      }
    }
    return false;
  }

  /** Whether Java can read each file and object. Python can, otherwise. */
  private boolean canBeRead(Configuration hadoop) {
    BitSet seen = new BitSet();
    for (JsonNode partition : answer.get("partitions")) {
      for (JsonNode train : partition) {
        int file = train.get(0).intValue();
        if (!train.has(CONTENT) && !seen.get(file) && !NativeFiles.canRead(file(file), hadoop)) {
          return false;
        }
        seen.set(file);
      }
    }
    return true;
  }

  InputPartition[] partitions() {
    List<InputPartition> partitions = new ArrayList<>();
    answer.get("partitions").forEach(p -> partitions.add(new NativePartition(schema(), trains(p))));
    return partitions.toArray(InputPartition[]::new);
  }

  private List<NativeTrain> trains(JsonNode partition) {
    List<NativeTrain> trains = new ArrayList<>();
    partition.forEach(train -> trains.add(train(train)));
    return trains;
  }

  /** The values are in the order in which {@code native_plan} of the Python side writes them. */
  private NativeTrain train(JsonNode values) {
    return new NativeTrain(
        file(values.get(0).intValue()),
        values.get(1).longValue(),
        values.get(2).intValue(),
        (int) values.get(3).longValue(),
        values.get(4).intValue(),
        values.get(5).longValue(),
        answer.get("producers").get(values.get(6).intValue()).textValue(),
        values.get(7).asLong(Long.MIN_VALUE),
        values.get(8).asLong(Long.MAX_VALUE),
        values.has(CONTENT) ? bytes(values.get(CONTENT)) : null);
  }

  private String file(int number) {
    return answer.get("files").get(number).textValue();
  }

  private byte[] schema() {
    return bytes(answer.get("schema"));
  }

  private static byte[] bytes(JsonNode base64) {
    try {
      return base64.binaryValue();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static Schema schema(byte[] message) {
    try {
      return MessageSerializer.deserializeSchema(
          new ReadChannel(Channels.newChannel(new ByteArrayInputStream(message))));
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static JsonNode parse(String json) {
    try {
      return MAPPER.readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException( // neither the text nor the cause, which quotes it: it has rows
          "The Python side of a rowtime source gave " + json.length() + " characters that cannot be read as JSON: "
              + e.getOriginalMessage());
    }
  }
}

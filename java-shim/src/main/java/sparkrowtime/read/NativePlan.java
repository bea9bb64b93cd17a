package sparkrowtime.read;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.vector.ipc.ReadChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Asks the Python side which trains lie between two offsets, and holds the answer. The question is a
 * start offset with the key "plan", which is never written to a log. The answer is an object with
 * "schema" and "partitions", each a list of trains; it has neither if only Python can read the rows.
 */
final class NativePlan {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final JsonNode answer;

  NativePlan(String answer) {
    this.answer = parse(answer);
  }

  static String question(String start, String end, int parallelism) {
    ObjectNode question = (ObjectNode) parse(start);
    question.putObject("plan").put("parallelism", parallelism).set("end", parse(end));
    return question.toString();
  }

  /** Whether the answer has partitions, and its rows have exactly the type that Spark expects. */
  boolean gives(StructType expected) {
    if (!answer.has("partitions") || !canBeNamed()) {
      return false;
    }
    StructType found = ArrowUtils.fromArrowSchema(schema(schema()));
    return found.catalogString().equals(expected.catalogString())
        && DataType.equalsStructurally(found, expected, false);
  }

  /** Under a locale such as C, Java cannot name a path that is not ASCII. Python can. */
  private boolean canBeNamed() {
    JsonNode train = answer.get("partitions").path(0).path(0);
    try {
      return train.isMissingNode() || train(train).travels() || Path.of(train(train).file()) != null;
    } catch (InvalidPathException e) {
      return false;
    }
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
        answer.get("files").get(values.get(0).intValue()).textValue(),
        values.get(1).longValue(),
        values.get(2).intValue(),
        (int) values.get(3).longValue(),
        values.get(4).intValue(),
        values.get(5).longValue(),
        answer.get("producers").get(values.get(6).intValue()).textValue(),
        values.get(7).asLong(Long.MIN_VALUE),
        values.get(8).asLong(Long.MAX_VALUE),
        values.has(9) ? bytes(values.get(9)) : null);
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
      throw new IllegalStateException("The Python side of a rowtime source must give JSON: " + json, e);
    }
  }
}

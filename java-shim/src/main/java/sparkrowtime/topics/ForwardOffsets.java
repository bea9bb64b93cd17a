package sparkrowtime.topics;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import sparkrowtime.python.OffsetJson;

/**
 * Law: from batch to batch the offsets of topics only grow, and a partition that was read stays. So a bound that counts
 * once counts for good. Spark's source breaks this with {@code failOnDataLoss=false}, where a topic was deleted.
 */
public final class ForwardOffsets {
  private ForwardOffsets() {}

  /**
   * Throws where a batch of topics would end below its start.
   *
   * @param bounds the path of the stream of bounds beside them
   */
  public static void require(String bounds, String start, String end) {
    if (!start.equals(end)) {
      ObjectNode ends = OffsetJson.topics(end);
      OffsetJson.topics(start)
          .properties()
          .forEach(topic -> topic.getValue().properties().forEach(p -> check(bounds, topic.getKey(), p, ends)));
    }
  }

  private static void check(String bounds, String topic, Map.Entry<String, JsonNode> read, ObjectNode ends) {
    JsonNode end = ends.path(topic).path(read.getKey());
    if (end.isMissingNode() || end.asLong() < read.getValue().asLong()) {
      throw new IllegalStateException(
          "The query has read " + topic + "[" + read.getKey() + "] up to offset " + read.getValue() + ", but now this partition "
              + (end.isMissingNode() ? "is not there any more" : "ends at offset " + end)
              + ": the topic was deleted, and perhaps created again, it has lost messages, or the query does not subscribe to"
              + " it any more. The bounds in " + bounds
              + " count by the old offsets, so what the query has promised by them would not hold for the messages that"
              + " come now. Start a query with a new checkpoint and, for a topic that was created again, a new stream of"
              + " bounds.");
    }
  }
}

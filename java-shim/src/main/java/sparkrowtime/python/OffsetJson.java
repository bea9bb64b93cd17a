package sparkrowtime.python;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;

/**
 * The JSON of a rowtime offset: an object with "floor", a whole number of microseconds or null. All
 * other keys belong to the Python side and are passed on unchanged. java-shim/README.md lists the keys.
 */
public final class OffsetJson {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private static final int MOST_SHOWN = 100;

  private OffsetJson() {}

  /** Refuses an offset in a checkpoint that began with a source of another kind. */
  public static void requireOurs(String json) {
    if (!isOurs(json)) {
      throw new IllegalArgumentException(
          "The checkpoint of this query began with another source: where it should have a position in a rowtime stream,"
              + " it has " + json.substring(0, Math.min(json.length(), MOST_SHOWN)) + ". Its state and its output are"
              + " of that source. Start the query with a new checkpointLocation and a new output.");
    }
  }

  private static boolean isOurs(String json) {
    try {
      return MAPPER.readTree(json).has("stream");
    } catch (JsonProcessingException e) {
      return false;
    }
  }

  /**
   * The floor; null if the stream has none. Late rows have one only when no row follows. Rows before the time at which
   * the query began to read are left out, so the floor is no earlier.
   */
  public static Long floor(String json) {
    JsonNode floor = parse(json).get("floor");
    if (floor == null && parse(json).has("rejection")) {
      return null;
    }
    if (floor == null || !(floor.isNull() || floor.canConvertToLong() && floor.isIntegralNumber())) {
      throw new IllegalStateException(
          "The offset of a rowtime source must have \"floor\", an integer or null, but is "
              + Shown.of(json)
              + ". This checkpoint was not written by a rowtime source of this version.");
    }
    return later(floor, parse(json).path("since"));
  }

  /** The later of two times, of which each may be null. */
  private static Long later(JsonNode one, JsonNode other) {
    if (!other.canConvertToLong()) {
      return one.isNull() ? null : Long.valueOf(one.asLong());
    }
    return one.isNull() ? other.asLong() : Math.max(one.asLong(), other.asLong());
  }

  /** The names of the topics in the offsets of Spark's Kafka source. */
  public static Set<String> namesOfTopics(String json) {
    Set<String> names = new TreeSet<>();
    topics(json).fieldNames().forEachRemaining(names::add);
    return names;
  }

  /** The offsets of Spark's Kafka source: an object of topics, each with the next offset of its partitions. */
  public static ObjectNode topics(String json) {
    try {
      ObjectNode topics = (ObjectNode) MAPPER.readTree(json);
      topics.forEach(ends -> ((ObjectNode) ends).properties().forEach(OffsetJson::requireOffset));
      return topics;
    } catch (JsonProcessingException | RuntimeException e) {
      throw new ShimMismatch("the offsets of Spark's Kafka source by topic and partition, not " + Shown.of(json), e);
    }
  }

  private static void requireOffset(Map.Entry<String, JsonNode> end) {
    if (Integer.parseInt(end.getKey()) < 0 || !end.getValue().isIntegralNumber()) {
      throw new IllegalArgumentException(end.toString());
    }
  }

  /** What a status has of an offset. */
  public static ObjectNode position(String json) {
    return parse(json).retain("stream", "seq", "cut", "floor");
  }

  /** The JSON of a value; not only an offset is passed on as JSON. */
  public static String write(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  public static ObjectNode parse(String json) {
    try {
      return (ObjectNode) MAPPER.readTree(json);
    } catch (JsonProcessingException | ClassCastException e) {
      throw new IllegalStateException("The offset of a rowtime source must be a JSON object: " + Shown.of(json), e);
    }
  }
}

package sparkrowtime.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.EndOfTime;
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
  static void requireOurs(String json) {
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

  /** The floor, or {@link Bound#UNKNOWN_YET} if the stream has none. Late rows have one only when no row follows. */
  public static long floor(String json) {
    JsonNode floor = parse(json).get("floor");
    if (floor == null && parse(json).has("rejection")) {
      return Bound.UNKNOWN_YET;
    }
    if (floor == null || !(floor.isNull() || floor.canConvertToLong() && floor.isIntegralNumber())) {
      throw new IllegalStateException(
          "The offset of a rowtime source must have \"floor\", an integer or null, but is "
              + Shown.of(json)
              + ". This checkpoint was not written by a rowtime source of this version.");
    }
    return floor.isNull() ? Bound.UNKNOWN_YET : EndOfTime.within(floor.asLong());
  }

  /** The offset with the handshake: bounds are applied, and who reads. Never written to a log. */
  static String withShim(String json, String reader) {
    return parse(json).put("shim", "1").put("reader", reader).toString();
  }

  /**
   * The question whether news come within so many seconds, in this stream or in those at the paths {@code beside}.
   * Never written to a log.
   */
  static String news(String json, double seconds, Set<String> beside) {
    ObjectNode node = parse(json).put("shim", "1");
    ArrayNode paths = node.putObject("news").put("seconds", seconds).putArray("streams");
    beside.forEach(paths::add);
    return node.toString();
  }

  /** The answer to {@link #news}. */
  static boolean isNews(String json) {
    return parse(json).path("news").asBoolean();
  }

  /** The question for the least rowtime at or above {@code from} up to this offset. Never written to a log. */
  static String leastSent(String json, long from) {
    return parse(json).put("shim", "1").put("leastSent", from).toString();
  }

  /** The offset of a Kafka source: by topic and partition the next offset. */
  public static JsonNode ofTopics(String json) {
    return parse(json);
  }

  /** The question for the floor of bounds beside topics that are read up to these offsets. Never written to a log. */
  static String floorAt(String json, String ofTopics) {
    ObjectNode node = parse(json).put("shim", "1");
    node.set("floorAt", topics(ofTopics));
    return node.toString();
  }

  /** The names of the topics in the offsets of Spark's Kafka source. */
  public static Set<String> namesOfTopics(String json) {
    Set<String> names = new TreeSet<>();
    topics(json).fieldNames().forEachRemaining(names::add);
    return names;
  }

  /** The question whether bounds are about the topics that have these ids now. Never written to a log. */
  static String topicIds(String json, Map<String, String> ids) {
    ObjectNode node = parse(json).put("shim", "1");
    ObjectNode now = node.putObject("topicIds");
    ids.forEach(now::put);
    return node.toString();
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

  /** The request to keep late rows of topics, an Arrow stream. Never written to a log. */
  static String keepLate(String json, String reader, long batch, long floor, byte[] rows) {
    ObjectNode node = parse(json).put("shim", "1");
    node.putObject("late").put("reader", reader).put("batch", batch).put("bound", EndOfTime.published(floor)).put("rows", rows);
    return node.toString();
  }

  /** The offset with what the query tells about itself. Never written to a log. */
  static String withAccount(String json, String account) {
    return parse(json).put("account", account).toString();
  }

  /** The message that the query has ended, as a question that is never written to a log. Null: without an error. */
  static String ended(String json, String account, String error) {
    ObjectNode node = parse(json).put("shim", "1").put("account", account);
    node.putObject("ended").put("error", error);
    return node.toString();
  }

  /** What an account has of an offset. */
  public static ObjectNode position(String json) {
    return parse(json).retain("stream", "seq", "cut", "floor");
  }

  /** The answer to {@link #leastSent}. */
  static long least(String json) {
    return parse(json).path("least").asLong(Bound.UNLIMITED);
  }

  static String without(String json, String key) {
    ObjectNode node = parse(json);
    return node.has(key) ? node.without(key).toString() : json;
  }

  /** The flat object "metrics" as strings; empty if there is none. Nulls are left out. */
  static Map<String, String> metrics(String json) {
    Map<String, String> metrics = new LinkedHashMap<>();
    parse(json)
        .path("metrics")
        .properties()
        .forEach(
            e -> {
              if (!e.getValue().isNull()) {
                metrics.put(e.getKey(), e.getValue().asText());
              }
            });
    return metrics;
  }

  public static String write(Map<String, Long> values) {
    try {
      return MAPPER.writeValueAsString(values);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  private static ObjectNode parse(String json) {
    try {
      return (ObjectNode) MAPPER.readTree(json);
    } catch (JsonProcessingException | ClassCastException e) {
      throw new IllegalStateException("The offset of a rowtime source must be a JSON object: " + Shown.of(json), e);
    }
  }
}

package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;

/** An offset of a table's source in Spark's log: what the format's own source has written, and a floor that was derived. */
public final class TableOffset {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String FLOOR = "rowtime.floor";

  private TableOffset() {}

  /** The floor in an offset, in microseconds; null without one. */
  public static Long floor(String json) {
    JsonNode floor = parsed(json).get(FLOOR);
    return floor == null ? null : Long.valueOf(floor.asLong());
  }

  /** The offset with a floor, or with none if that is null. */
  public static String withFloor(String json, Long floor) {
    return floor == null ? json : parsed(json).put(FLOOR, floor).toString();
  }

  /** The offset as the format's own source has written it. */
  public static String withoutFloor(String json) {
    ObjectNode offset = parsed(json);
    return offset.remove(FLOOR) == null ? json : offset.toString();
  }

  static ObjectNode parsed(String json) {
    try {
      if (MAPPER.readTree(json) instanceof ObjectNode offset) {
        return offset;
      }
    } catch (JsonProcessingException e) {
      throw mismatch(json, e);
    }
    throw mismatch(json, null);
  }

  private static ShimMismatch mismatch(String json, Throwable cause) {
    return new ShimMismatch("an offset of a table's source to be an object in JSON, not " + Shown.of(json), cause);
  }
}

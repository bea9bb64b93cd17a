package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;

/**
 * An offset of a table's source in Spark's log: what the format's own source has written, and the floor where one is derived,
 * which is null as long as there is none.
 */
public final class TableOffset {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String FLOOR = "rowtime.floor";
  private static final String COLUMN = "rowtime.floorColumn";

  private TableOffset() {}

  /** Whether the floor at it was derived. */
  public static boolean isWatched(String json) {
    return parsed(json).has(FLOOR);
  }

  /** The floor in an offset, in microseconds; null without one. */
  public static Long floor(String json) {
    JsonNode floor = parsed(json).path(FLOOR);
    return floor.isIntegralNumber() ? Long.valueOf(floor.asLong()) : null;
  }

  /** The column of which the floor was derived; null where that is not said, or it was derived of none. */
  public static String column(String json) {
    return parsed(json).path(COLUMN).textValue();
  }

  /**
   * The offset with the floor that was derived at it.
   *
   * @param floor in microseconds; null for none
   * @param column of which it was derived; null for none
   */
  public static String withFloor(String json, Long floor, String column) {
    ObjectNode offset = parsed(json).put(FLOOR, floor);
    return (column == null ? offset : offset.put(COLUMN, column)).toString();
  }

  /** The offset as the format's own source has written it. */
  public static String withoutFloor(String json) {
    ObjectNode offset = parsed(json);
    return offset.remove(FLOOR) == null ? json : offset.without(COLUMN).toString();
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

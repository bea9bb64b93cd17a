package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;

/**
 * An offset of Delta's streaming source: up to which file of which version it has read. While it reads the snapshot
 * that it started with, the files are in no order of versions.
 *
 * @param table the id of the table
 * @param version the version that is read next, or in part
 * @param inSnapshot whether it is the starting snapshot that is read in part
 */
public record DeltaOffset(String table, long version, boolean inSnapshot) {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String FLOOR = "rowtime.floor";

  public static DeltaOffset of(String json) {
    ObjectNode offset = parsed(json);
    JsonNode version = offset.path("reservoirVersion");
    JsonNode snapshot = offset.path("isStartingVersion");
    if (version.isIntegralNumber() && snapshot.isBoolean() && offset.has("reservoirId")) {
      return new DeltaOffset(offset.get("reservoirId").asText(), version.asLong(), snapshot.booleanValue());
    }
    throw mismatch(json, null);
  }

  /** The floor in an offset, where it was derived from the rows of the table; null without one. */
  public static Long floor(String json) {
    JsonNode floor = parsed(json).get(FLOOR);
    return floor == null ? null : Long.valueOf(floor.asLong());
  }

  /** The offset with a floor, or with none if that is null. */
  static String with(String json, Long floor) {
    ObjectNode offset = parsed(json);
    return floor == null ? json : offset.put(FLOOR, floor).toString();
  }

  /** The offset as Delta's source has written it. */
  public static String ofDelta(String json) {
    ObjectNode offset = parsed(json);
    return offset.remove(FLOOR) == null ? json : offset.toString();
  }

  private static ObjectNode parsed(String json) {
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
    return new ShimMismatch(
        "an offset of Delta's source with reservoirId, reservoirVersion and isStartingVersion, not " + Shown.of(json), cause);
  }

  /** The last version of which all rows are read; negative for none. */
  public long passed() {
    return inSnapshot ? -1 : version - 1;
  }
}

package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
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

  public static DeltaOffset of(String json) {
    try {
      JsonNode offset = MAPPER.readTree(json);
      JsonNode version = offset.get("reservoirVersion");
      JsonNode snapshot = offset.get("isStartingVersion");
      JsonNode table = offset.get("reservoirId");
      if (version != null && version.isIntegralNumber() && snapshot != null && snapshot.isBoolean() && table != null) {
        return new DeltaOffset(table.asText(), version.asLong(), snapshot.booleanValue());
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

package sparkrowtime.tables;

import com.fasterxml.jackson.databind.JsonNode;
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
  public static DeltaOffset of(String json) {
    JsonNode offset = TableOffset.parsed(json);
    JsonNode version = offset.path("reservoirVersion");
    JsonNode snapshot = offset.path("isStartingVersion");
    if (version.isIntegralNumber() && snapshot.isBoolean() && offset.has("reservoirId")) {
      return new DeltaOffset(offset.get("reservoirId").asText(), version.asLong(), snapshot.booleanValue());
    }
    throw new ShimMismatch(
        "an offset of Delta's source with reservoirId, reservoirVersion and isStartingVersion, not " + Shown.of(json), null);
  }

  /** The last version of which all rows are read; negative for none. */
  public long passed() {
    return inSnapshot ? -1 : version - 1;
  }
}

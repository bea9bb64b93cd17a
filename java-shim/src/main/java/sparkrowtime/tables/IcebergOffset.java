package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;

/**
 * An offset of Iceberg's streaming source: so many files of a snapshot have been read.
 *
 * @param snapshot the snapshot that is read; negative while the table has none
 * @param files how many of its files have been read
 * @param inTable whether all files of the table are meant, and not only those that the snapshot has added
 */
public record IcebergOffset(long snapshot, long files, boolean inTable) {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  public static IcebergOffset of(String json) {
    try {
      JsonNode offset = MAPPER.readTree(json);
      JsonNode snapshot = offset.get("snapshot_id");
      JsonNode files = offset.get("position");
      JsonNode all = offset.get("scan_all_files");
      if (isNumber(snapshot) && isNumber(files) && all != null && all.isBoolean()) {
        return new IcebergOffset(snapshot.asLong(), files.asLong(), all.booleanValue());
      }
    } catch (JsonProcessingException e) {
      throw mismatch(json, e);
    }
    throw mismatch(json, null);
  }

  private static boolean isNumber(JsonNode node) {
    return node != null && node.isIntegralNumber();
  }

  private static ShimMismatch mismatch(String json, Throwable cause) {
    return new ShimMismatch(
        "an offset of Iceberg's source with snapshot_id, position and scan_all_files, not " + Shown.of(json), cause);
  }
}

package sparkrowtime.tables;

import com.fasterxml.jackson.databind.JsonNode;
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
  public static IcebergOffset of(String json) {
    JsonNode offset = TableOffset.parsed(json);
    JsonNode snapshot = offset.path("snapshot_id");
    JsonNode files = offset.path("position");
    JsonNode all = offset.path("scan_all_files");
    if (snapshot.isIntegralNumber() && files.isIntegralNumber() && all.isBoolean()) {
      return new IcebergOffset(snapshot.asLong(), files.asLong(), all.booleanValue());
    }
    throw new ShimMismatch(
        "an offset of Iceberg's source with snapshot_id, position and scan_all_files, not " + Shown.of(json), null);
  }
}

package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.time.DateTimeException;
import java.time.OffsetDateTime;

/**
 * The largest time of a column in a file of a Delta table, by the statistics in its action {@code add}: no row is read.
 *
 * <p>Law: it is never later than the largest time of the file's rows. Delta cuts it to milliseconds.
 */
final class DeltaTimes {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private DeltaTimes() {}

  static CommitLog.FileTime of(JsonNode add, String column) {
    JsonNode statistics = statistics(add);
    JsonNode rows = statistics.path("numRecords");
    Long largest = time(at(statistics, "maxValues", column));
    boolean allNull = rows.isNumber() && rows.asLong() == at(statistics, "nullCount", column).asLong(-1);
    return new CommitLog.FileTime(largest, largest != null || allNull || rows.isNumber() && rows.asLong() == 0);
  }

  private static JsonNode statistics(JsonNode add) {
    try {
      JsonNode text = add.path("stats");
      return text.isTextual() ? MAPPER.readTree(text.asText()) : MissingNode.getInstance();
    } catch (JsonProcessingException e) {
      return MissingNode.getInstance();
    }
  }

  private static JsonNode at(JsonNode statistics, String kind, String column) {
    JsonNode found = statistics.path(kind);
    for (String part : column.split("\\.")) {
      found = found.path(part);
    }
    return found;
  }

  /** A time with its zone, as writers of Delta tables write it; null for anything else. */
  private static Long time(JsonNode text) {
    try {
      return text.isTextual() ? DeltaCommit.micros(OffsetDateTime.parse(text.asText()).toInstant()) : null;
    } catch (DateTimeException | ArithmeticException e) {
      return null;
    }
  }
}

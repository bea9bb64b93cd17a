package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.time.DateTimeException;
import java.time.OffsetDateTime;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The largest times of a column in the commits of a Delta table, by the statistics of their files: no row is read.
 *
 * <p>Law: a time is never later than the largest that a commit has brought. Delta cuts it to milliseconds, and a file
 * without statistics of the column counts for nothing.
 */
final class LargestTimes {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final DeltaLog files;
  private final String column;
  private boolean warned;

  LargestTimes(DeltaLog files, String column) {
    this.files = files;
    this.column = column;
  }

  /** The largest time of the rows that a version has brought, in microseconds; null where that is not known. */
  Long in(long version) {
    List<JsonNode> added = files.added(version);
    boolean lacks = added.stream().anyMatch(add -> !hasStatistics(statistics(add)));
    if (lacks && !warned) {
      warned = true;
      LOG.warn(
          "Version {} of {} has files without statistics of its column {}, so their rows do not move the bound. Name the column"
              + " in the table's property delta.dataSkippingStatsColumns, and let its writers write statistics. This is said"
              + " once in a run.",
          version, files.table().name(), column);
    }
    return added.stream().map(add -> time(at(statistics(add), "maxValues"))).reduce(null, LargestTimes::later);
  }

  /** The later of two times, of which each may be null. */
  static Long later(Long one, Long other) {
    return one == null || other != null && other > one ? other : one;
  }

  private static JsonNode statistics(JsonNode add) {
    try {
      JsonNode text = add.path("stats");
      return text.isTextual() ? MAPPER.readTree(text.asText()) : MissingNode.getInstance();
    } catch (JsonProcessingException e) {
      return MissingNode.getInstance();
    }
  }

  private boolean hasStatistics(JsonNode statistics) {
    JsonNode rows = statistics.path("numRecords");
    boolean allNull = rows.isNumber() && rows.asLong() == at(statistics, "nullCount").asLong(-1);
    return time(at(statistics, "maxValues")) != null || allNull || rows.isNumber() && rows.asLong() == 0;
  }

  private JsonNode at(JsonNode statistics, String kind) {
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

package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Shown;

/**
 * What a commit of a Delta log says about itself: its action commitInfo, as far as bounds need it.
 *
 * @param info the text of the action, which tells the commit from one of another table at the same place
 * @param floor the floor in microseconds that it promises; null without one
 * @param column the column that it promises the floor of; null if it does not say
 * @param operation its name in the table's history
 * @param restored the version whose rows a RESTORE has brought back; null for other operations, and if it was said by time
 * @param replaces whether it has put other rows in the place of all that were there
 */
record DeltaCommit(String info, Long floor, String column, String operation, Long restored, boolean replaces) {
  static final String RESTORE = "RESTORE";

  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String KEY = "commitInfo";
  private static final String BOUND = "rowtime.bound";

  /** Reads a commit, a line for each action, up to its commitInfo. */
  static DeltaCommit of(String file, BufferedReader lines) throws IOException {
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode info = line.contains(KEY) ? action(file, line).path(KEY) : MissingNode.getInstance();
      if (info.isObject()) {
        return of(file, line, info);
      }
    }
    return new DeltaCommit("", null, null, "", null, false);
  }

  private static JsonNode action(String file, String line) {
    try {
      return MAPPER.readTree(line);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is no commit of a Delta log: " + Shown.of(line), e);
    }
  }

  private static DeltaCommit of(String file, String line, JsonNode info) {
    String operation = info.path("operation").asText();
    JsonNode parameters = info.path("operationParameters");
    JsonNode restored = parameters.path("version");
    JsonNode bound = info.has(BOUND) ? info : given(info.path("userMetadata").asText());
    return new DeltaCommit(
        line,
        bound.has(BOUND) ? floor(file, bound.get(BOUND).asText(), bound.path("rowtime.strict").asText()) : null,
        column(bound),
        operation,
        operation.equals(RESTORE) && restored.asText().matches("\\d+") ? (Long) restored.asLong() : null,
        replaces(operation, parameters));
  }

  /** The metadata that a query gives to Delta's own sink, if they are properties; those of others may be any text. */
  private static JsonNode given(String metadata) {
    try {
      return metadata.contains(BOUND) ? MAPPER.readTree(metadata) : MissingNode.getInstance();
    } catch (JsonProcessingException e) {
      return MissingNode.getInstance();
    }
  }

  private static long floor(String file, String bound, String strict) {
    try {
      long micros = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.parse(bound));
      return strict.equals("true") ? micros + 1 : micros;
    } catch (DateTimeException | ArithmeticException e) {
      throw new IllegalStateException(
          file + " has " + BOUND + "=" + Shown.of(bound) + ", which is no time in ISO 8601, such as 2026-01-05T10:00:00Z.", e);
    }
  }

  /** The column that a query has said, without its backticks; a drain, which says the position of its reader, writes that of the stream. */
  private static String column(JsonNode bound) {
    String drained = bound.has("rowtime.position") ? Rowtime.COLUMN : "";
    String said = bound.path("rowtime.column").asText(drained).replace("`", "");
    return said.isEmpty() ? null : said;
  }

  private static boolean replaces(String operation, JsonNode parameters) {
    String predicate = parameters.path("predicate").asText("");
    boolean whole = predicate.isEmpty() || predicate.equals("null") || predicate.equals("[]");
    boolean dynamic = parameters.path("isDynamicPartitionOverwrite").asText().equals("true");
    return operation.contains("REPLACE TABLE")
        || operation.equals("CLONE")
        || operation.equals("WRITE") && parameters.path("mode").asText().equals("Overwrite") && whole && !dynamic;
  }
}

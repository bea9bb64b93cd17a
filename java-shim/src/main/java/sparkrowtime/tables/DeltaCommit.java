package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Shown;

/**
 * What a commit of a Delta log says about itself: its action commitInfo, as far as bounds need it.
 *
 * <p>Law: properties of a bound are those of the action itself, which only who means them can write, or those of the
 * metadata that a streaming query has given to Delta's own sink, in the commit of the batch that they name. Spark's setting
 * for such metadata is inherited by any statement of a session.
 */
final class DeltaCommit {
  /** Who writes bounds, where it is a drain. */
  static final String DRAIN = "a drain";

  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String KEY = "commitInfo";
  private static final String ADD = "add";
  private static final String BOUND = "rowtime.bound";
  private static final String QUERY = "rowtime.query";
  private static final String BATCH = "rowtime.batch";
  private static final String POSITION = "rowtime.position";

  private final String file;
  private final String text;
  private final JsonNode info;
  private final JsonNode properties;

  private DeltaCommit(String file, String text, JsonNode info) {
    this.file = file;
    this.text = text;
    this.info = info;
    this.properties = info.has(BOUND) || info.has(QUERY) || info.has(POSITION) ? info : given(info);
  }

  /** Reads a commit, a line for each action, up to its commitInfo. */
  static DeltaCommit of(String file, BufferedReader lines) throws IOException {
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode info = line.contains(KEY) ? action(file, line).path(KEY) : MissingNode.getInstance();
      if (info.isObject()) {
        return new DeltaCommit(file, line, info);
      }
    }
    return new DeltaCommit(file, "", MissingNode.getInstance());
  }

  /** The actions of a commit that add files with new rows. */
  static List<JsonNode> added(String file, BufferedReader lines) throws IOException {
    List<JsonNode> added = new ArrayList<>();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode add = line.contains(ADD) ? action(file, line).path(ADD) : MissingNode.getInstance();
      if (add.path("dataChange").asBoolean()) {
        added.add(add);
      }
    }
    return added;
  }

  private static JsonNode action(String file, String line) {
    try {
      return MAPPER.readTree(line);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is no commit of a Delta log: " + Shown.of(line), e);
    }
  }

  private static JsonNode given(JsonNode info) {
    String metadata = info.path("userMetadata").asText();
    try {
      JsonNode properties = metadata.contains(QUERY) ? MAPPER.readTree(metadata) : MissingNode.getInstance();
      JsonNode batch = info.path("operationParameters");
      boolean isOfBatch =
          batch.has("queryId")
              && properties.path(QUERY).asText().equals(batch.path("queryId").asText())
              && properties.path(BATCH).asText().equals(batch.path("epochId").asText());
      return isOfBatch ? properties : MissingNode.getInstance();
    } catch (JsonProcessingException e) {
      return MissingNode.getInstance();
    }
  }

  /** The text of the action, which tells the commit from one of another table at the same place. */
  String text() {
    return text;
  }

  /** The floor in microseconds that it promises; null without one. */
  Long floor() {
    if (!properties.has(BOUND)) {
      return null;
    }
    String bound = properties.get(BOUND).asText();
    try {
      long micros = micros(Instant.parse(bound));
      return properties.path("rowtime.strict").asText().equals("true") ? micros + 1 : micros;
    } catch (DateTimeException | ArithmeticException e) {
      throw new IllegalStateException(
          file + " has " + BOUND + "=" + Shown.of(bound) + ", which is no time in ISO 8601, such as 2026-01-05T10:00:00Z.", e);
    }
  }

  /** Microseconds since 1970, up to the year 9999: {@code ChronoUnit.between} counts nanoseconds, which end in 2262. */
  static long micros(Instant time) {
    return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000), time.getNano() / 1_000);
  }

  /** The column that a query has said, without its backticks; a drain writes that of the stream. Null if it is not said. */
  String column() {
    String said = properties.path("rowtime.column").asText(properties.has(POSITION) ? Rowtime.COLUMN : "").replace("`", "");
    return said.isEmpty() ? null : said;
  }

  /** The query that has written it, by its id, or {@link #DRAIN}; null if it has properties of neither. */
  String writer() {
    return properties.has(QUERY) ? properties.get(QUERY).asText() : properties.has(POSITION) ? DRAIN : null;
  }

  /** The batch of the query that has written it; -1 where it is of none. */
  long batch() {
    return properties.path(BATCH).asLong(-1);
  }

  /** Its name in the table's history. */
  String operation() {
    return info.path("operation").asText();
  }

  boolean isRestore() {
    return operation().equals("RESTORE");
  }

  /** The version whose rows a RESTORE at a version has brought back. */
  long restored(long at) {
    String version = info.path("operationParameters").path("version").asText();
    if (version.matches("\\d+") && Long.parseLong(version) < at) {
      return Long.parseLong(version);
    }
    throw new IllegalStateException(
        "DataLostError: a table was set back by RESTORE to a time (" + file + "), and the log does not say which version that"
            + " was, so the bound of its rows is not known. Say it by number, which changes no row if it is the same: RESTORE"
            + " TABLE ... TO VERSION AS OF n.");
  }

  /** Whether it has put other rows in the place of all that were there. */
  boolean replaces() {
    JsonNode parameters = info.path("operationParameters");
    String predicate = parameters.path("predicate").asText("");
    boolean whole = predicate.isEmpty() || predicate.equals("null") || predicate.equals("[]");
    boolean dynamic = parameters.path("isDynamicPartitionOverwrite").asText().equals("true");
    return operation().contains("REPLACE TABLE")
        || operation().equals("CLONE")
        || operation().equals("STREAMING UPDATE") && parameters.path("outputMode").asText().equals("Complete")
        || operation().equals("WRITE") && parameters.path("mode").asText().equals("Overwrite") && whole && !dynamic;
  }

  /**
   * The name that a column had before this commit, by which earlier commits name it.
   *
   * @param column its name after the commit, a path such as {@code window.end}
   * @return null where there was no such column
   */
  String before(String column) {
    JsonNode parameters = info.path("operationParameters");
    String old = parameters.path("oldColumnPath").asText();
    String renamed = parameters.path("newColumnPath").asText();
    if (operation().equals("RENAME COLUMN") && isIn(column, renamed)) {
      return old + column.substring(renamed.length());
    }
    boolean isGone = operation().equals("RENAME COLUMN") && isIn(column, old)
        || operation().equals("DROP COLUMNS") && parameters.path("columns").asText().contains('"' + column.split("\\.")[0] + '"');
    return isGone ? null : column;
  }

  private static boolean isIn(String column, String struct) {
    return column.equalsIgnoreCase(struct) || column.regionMatches(true, 0, struct + ".", 0, struct.length() + 1);
  }
}

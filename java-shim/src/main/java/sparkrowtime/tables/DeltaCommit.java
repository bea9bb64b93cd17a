package sparkrowtime.tables;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import sparkrowtime.support.Shown;

/**
 * What a commit of a Delta log says about itself: its action commitInfo, as far as bounds need it.
 *
 * <p>Law: properties of a bound are those of the action itself, which only who means them can write, or those of the
 * metadata that a streaming query has given to Delta's own sink, in the commit of the batch that they name. Spark's setting
 * for such metadata is inherited by any statement of a session.
 */
final class DeltaCommit extends TableCommit {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final String KEY = "commitInfo";
  private static final String ADD = "add";
  private static final String REMOVE = "remove";
  private static final String CHANGES = "dataChange";

  /** The end of the year 9999. What is later is no time in milliseconds. */
  private static final long LAST = 253_402_300_799_999L;

  private final String file;
  private final String text;
  private final JsonNode info;
  private final JsonNode properties;
  private final List<JsonNode> added;

  private DeltaCommit(String file, String text, JsonNode info, List<JsonNode> added) {
    this.file = file;
    this.text = text;
    this.info = info;
    this.added = added;
    this.properties = info.has(BOUND) || info.has(QUERY) || info.has(POSITION) ? info : given(info);
  }

  /** Reads a commit, a line for each action, up to its commitInfo. */
  static DeltaCommit of(String file, BufferedReader lines) throws IOException {
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode info = line.contains(KEY) ? action(file, line).path(KEY) : MissingNode.getInstance();
      if (info.isObject()) {
        return new DeltaCommit(file, line, info, List.of());
      }
    }
    return new DeltaCommit(file, "", MissingNode.getInstance(), List.of());
  }

  /** Reads a commit with the files that it adds. */
  static DeltaCommit whole(String file, BufferedReader lines) throws IOException {
    String text = "";
    JsonNode info = MissingNode.getInstance();
    List<JsonNode> added = new ArrayList<>();
    boolean removes = false;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      boolean isAsked = line.contains(KEY) || line.contains(ADD) || line.contains(REMOVE);
      JsonNode action = isAsked ? action(file, line) : MissingNode.getInstance();
      if (action.path(KEY).isObject()) {
        text = line;
        info = action.path(KEY);
      } else if (action.path(ADD).path(CHANGES).asBoolean()) {
        added.add(action.path(ADD));
      }
      removes |= action.path(REMOVE).path(CHANGES).asBoolean();
    }
    return new DeltaCommit(file, text, info, removes ? List.of() : added);
  }

  /** Its actions that add files with new rows; none where it takes rows away, too: a stream goes by it, or fails. */
  List<JsonNode> added() {
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

  @Override
  String said(String key) {
    return properties.has(key) ? properties.get(key).asText() : null;
  }

  /** Delta's sink says so in the commit of each batch. */
  @Override
  boolean isOf(String query) {
    return super.isOf(query) || query.equals(info.path("operationParameters").path("queryId").asText());
  }

  @Override
  long batch() {
    return super.batch() < 0 ? info.path("operationParameters").path("epochId").asLong(-1) : super.batch();
  }

  @Override
  String place() {
    return file;
  }

  @Override
  String text() {
    return text;
  }

  /** The one of the table's feature, which rises from version to version, if it is there. */
  @Override
  Long time() {
    JsonNode time = info.path(info.has("inCommitTimestamp") ? "inCommitTimestamp" : "timestamp");
    boolean isTime = time.isIntegralNumber() && time.canConvertToLong() && time.asLong() >= 0 && time.asLong() <= LAST;
    return isTime ? Long.valueOf(time.asLong() * 1_000) : null;
  }

  @Override
  String operation() {
    return info.path("operation").asText();
  }

  @Override
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

  @Override
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

  @Override
  String before(String column) {
    JsonNode parameters = info.path("operationParameters");
    String old = parameters.path("oldColumnPath").asText();
    String renamed = parameters.path("newColumnPath").asText();
    if (operation().equals("RENAME COLUMN") && isIn(column, renamed)) {
      return old + column.substring(renamed.length());
    }
    boolean isGone = operation().equals("RENAME COLUMN") && isIn(column, old)
        || operation().equals("DROP COLUMNS") && isDropped(column, parameters.path("columns").asText())
        || operation().equals("REPLACE COLUMNS");
    return isGone ? null : column;
  }

  /** The columns that were dropped are a list in JSON. */
  private boolean isDropped(String column, String columns) {
    for (JsonNode dropped : action(file, columns)) {
      if (isIn(column, dropped.asText().replace("`", ""))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isIn(String column, String struct) {
    return column.equalsIgnoreCase(struct) || column.regionMatches(true, 0, struct + ".", 0, struct.length() + 1);
  }
}

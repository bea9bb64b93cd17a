package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.List;
import java.util.stream.StreamSupport;

/**
 * What of a query's status is in a snapshot of an Iceberg table: the query, its weakest source, how far it has read that, and
 * where a column has lost its bound. It has some 200 characters, since Iceberg writes the summaries of all snapshots again with
 * each commit; the whole status has several times as many. That is all that {@code rowtime why} asks of a table. Where a join holds
 * bounds back, it has all sources, and what tells for which of them the query waits.
 */
public final class BriefStatus {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private BriefStatus() {}

  /** Python asks this, too, for a snapshot that {@code tableWriter} makes. */
  public static String of(String status) {
    try {
      JsonNode whole = MAPPER.readTree(status);
      ObjectNode brief = MAPPER.createObjectNode();
      brief.set("query", whole.path("query"));
      brief.set("name", whole.path("name"));
      List<JsonNode> bounded = bounded(whole.path("sources"));
      boolean joined = bounded.stream().anyMatch(source -> source.path("behind").asLong() > 0);
      List<JsonNode> told = joined ? bounded : weakest(bounded);
      brief.putArray("sources").addAll(told.stream().map(BriefStatus::brief).toList());
      if (joined) {
        brief.set("output", whole.path("output"));
        ArrayNode operators = brief.putArray("operators");
        whole.path("operators").forEach(each -> operators.add(only(each, List.of("name", "emits"))));
      }
      brief.set("lost", whole.path("lost"));
      return brief.toString();
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  private static List<JsonNode> bounded(JsonNode sources) {
    return StreamSupport.stream(sources.spliterator(), false).filter(source -> source.has("table") || source.has("path")).toList();
  }

  /** The first source of those with the least bound; none where none has bounds. One that promises nothing yet is weakest. */
  private static List<JsonNode> weakest(List<JsonNode> sources) {
    return sources.stream()
        .min(Comparator.comparingLong(source -> source.path("position").path("floor").asLong(-1)))
        .stream()
        .toList();
  }

  private static JsonNode brief(JsonNode source) {
    ObjectNode brief = only(source, List.of(source.has("table") ? "table" : "path", "behind"));
    return brief.set("position", only(source.path("position"), List.of("version", "floor")));
  }

  private static ObjectNode only(JsonNode whole, List<String> keys) {
    ObjectNode some = MAPPER.createObjectNode();
    keys.stream().filter(whole::has).forEach(key -> some.set(key, whole.get(key)));
    return some;
  }
}

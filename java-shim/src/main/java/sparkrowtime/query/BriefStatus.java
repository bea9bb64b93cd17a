package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.List;
import java.util.stream.StreamSupport;

/**
 * What of a query's status is in a snapshot of an Iceberg table: the query, its weakest source, how far it has read that, and
 * where a column has lost its bound. It has some 200 characters, since Iceberg writes the summaries of all snapshots again with
 * each commit; the whole status has several times as many. That is all that {@code rowtime why} asks of a table.
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
      JsonNode weakest = weakest(whole.path("sources"));
      brief.putArray("sources").addAll(weakest == null ? List.of() : List.of(brief(weakest)));
      brief.set("lost", whole.path("lost"));
      return brief.toString();
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The first source of those with the least bound; null where none has bounds. One that promises nothing yet is weakest. */
  private static JsonNode weakest(JsonNode sources) {
    return StreamSupport.stream(sources.spliterator(), false)
        .filter(source -> source.has("table") || source.has("path"))
        .min(Comparator.comparingLong(source -> source.path("position").path("floor").asLong(-1)))
        .orElse(null);
  }

  private static ObjectNode brief(JsonNode source) {
    ObjectNode brief = MAPPER.createObjectNode();
    String kind = source.has("table") ? "table" : "path";
    brief.set(kind, source.get(kind));
    ObjectNode position = brief.putObject("position");
    for (String key : List.of("version", "floor")) {
      if (source.path("position").has(key)) {
        position.set(key, source.path("position").get(key));
      }
    }
    return brief;
  }
}

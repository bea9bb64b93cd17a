package sparkrowtime.python;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * What the extension asks the Python side of a source: each method is a question that {@code spark/questions.py} hands
 * to a function of the source. java-shim/README.md lists the keys. Used in the query's thread.
 */
public final class Questions {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final int MOST_ANSWERS = 8;

  private final Planner planner;
  private final Offset anywhere;
  private final MicroBatchStream stream;
  private final String reader;
  private final JsonNode topic;
  private final Map<String, Long> answers = new HashMap<>();
  private String reads;
  private Set<String> named = Set.of();

  /**
   * @param reader the source's part of the checkpoint, which names this reader in the stream's retention
   * @param topic the topics from which the bounds of the stream are derived, as a text of JSON; null if they are not
   */
  public Questions(MicroBatchStream stream, String reader, String topic) {
    this.stream = stream;
    this.planner = new Planner(stream);
    this.anywhere = stream.deserializeOffset("{}");
    this.reader = reader;
    this.topic = topic == null ? null : parse(topic);
  }

  /**
   * Tells what the query reads of the topics beside the stream: of its {@code topics} all partitions, or these
   * {@code partitions} alone. Null: also topics that come later.
   *
   * @param topics the names of those that it reads, as far as they are given; its offsets may lack one that it has not seen
   */
  public void reads(String what, Set<String> topics) {
    reads = what;
    named = topics;
  }

  private ObjectNode offsets(String ofTopics) {
    ObjectNode offsets = OffsetJson.topics(ofTopics);
    named.stream().filter(topic -> !offsets.has(topic)).forEach(offsets::putObject);
    return offsets;
  }

  /** What the query reads of the topics beside the stream. */
  public String reads() {
    return reads;
  }

  /** By what Spark knows the source in the checkpoint: its number, or its name. */
  public String source() {
    return reader.substring(reader.lastIndexOf('/') + 1);
  }

  /**
   * The end of the next batch; {@code start} if there is nothing new.
   *
   * @param unlimited whether the limits of the options are left out
   * @param status what the query tells about its last batch; null if it was told before
   */
  public Offset next(Offset start, boolean unlimited, String status) {
    ObjectNode question = Planner.question("next");
    question.put("unlimited", unlimited).put("reader", reader).put("account", status).set("topic", topic);
    return stream.deserializeOffset(planner.ask(start, question));
  }

  /** Whether news come within so many seconds, in this stream or in those at the paths {@code others}. */
  public boolean news(double seconds, Set<String> others) {
    ObjectNode question = Planner.question("news").put("seconds", seconds);
    ArrayNode paths = question.putArray("streams");
    others.forEach(paths::add);
    return parse(planner.ask(anywhere, question)).booleanValue();
  }

  /** The stream's latest offset, and its metrics for the query's progress. */
  public Latest latest() {
    ObjectNode offset = OffsetJson.parse(planner.ask(anywhere, Planner.question("latest")));
    JsonNode metrics = offset.path("metrics");
    return new Latest(stream.deserializeOffset(offset.without("metrics").toString()), texts(metrics));
  }

  private static Map<String, String> texts(JsonNode values) {
    Map<String, String> texts = new LinkedHashMap<>();
    values.properties().stream()
        .filter(e -> !e.getValue().isNull())
        .forEach(e -> texts.put(e.getKey(), e.getValue().asText()));
    return texts;
  }

  /**
   * With Trigger.AvailableNow: the query reads what is there now. False: not all of that is there yet, so this is to be
   * asked again.
   */
  public boolean target() {
    ObjectNode question = Planner.question("target").put("reader", reader);
    question.set("topic", topic);
    return parse(planner.ask(anywhere, question)).asBoolean(true);
  }

  /** Which trains a batch reads, as a text of JSON; an object without keys if only Python can read them. */
  public String plan(Offset start, Offset end, int parallelism) {
    ObjectNode question = Planner.question("plan").put("parallelism", parallelism);
    question.set("end", parse(end.json()));
    return planner.ask(start, question);
  }

  /** What Python workers read of a batch. */
  public InputPartition[] partitions(Offset start, Offset end) {
    ObjectNode question = Planner.question("partitions").put("reader", reader);
    question.set("end", parse(end.json()));
    return planner.partitions(start, question);
  }

  /**
   * The least rowtime at or above {@code from} among the rows that were sent up to {@code end}; null if there is none.
   * The rows up to an offset never change.
   */
  public Long leastSent(Offset end, long from) {
    return known(end, Planner.question("leastSent").put("time", from));
  }

  /** The floor of bounds beside topics, of which the batch reads up to these offsets; null if there is none. */
  public Long floorAt(Offset end, String ofTopics) {
    ObjectNode question = Planner.question("floorAt").put("reader", reader).put("reads", reads);
    question.set("offsets", offsets(ofTopics));
    return known(end, question);
  }

  /** Throws if bounds of this stream are about topics with other ids than those of now. */
  public void requireTopics(Offset end, Map<String, String> ids) {
    if (!ids.isEmpty()) {
      ObjectNode question = Planner.question("topicIds");
      ObjectNode now = question.putObject("ids");
      ids.forEach(now::put);
      planner.ask(end, question);
    }
  }

  /**
   * Keeps the late rows of a batch of the topics, an Arrow stream, in the stream of bounds, if it does not have them.
   *
   * @param ofTopics up to where the batch has read the topics
   * @param floor the bound that the rows lie below, as it is published
   */
  public void keepLate(Offset end, String ofTopics, String query, long batch, long floor, byte[] rows) {
    ObjectNode question = Planner.question("late").put("reader", query + "-" + source());
    question.set("offsets", OffsetJson.topics(ofTopics));
    planner.ask(end, question.put("batch", batch).put("bound", floor).put("rows", rows));
  }

  /** Tells that the query has ended. Null: without an error. */
  public void ended(String status, String error) {
    planner.ask(anywhere, Planner.question("ended").put("account", status).put("error", error));
  }

  /**
   * A batch has been committed.
   *
   * @param ofTopics up to where it has read the topics beside this stream; null if there are none
   */
  public void commit(Offset end, String ofTopics) {
    if (ofTopics != null) {
      ObjectNode question = Planner.question("passed").put("reads", reads);
      question.set("offsets", offsets(ofTopics));
      planner.ask(end, question);
    }
    planner.commit(end);
  }

  /** The answer is a function of the offset and the question, so an idle query does not ask again. */
  private Long known(Offset end, ObjectNode question) {
    String key = question + " " + end.json();
    if (!answers.containsKey(key)) {
      if (answers.size() > MOST_ANSWERS) {
        answers.clear();
      }
      JsonNode answer = parse(planner.ask(end, question));
      answers.put(key, answer.isNull() ? null : answer.asLong());
    }
    return answers.get(key);
  }

  private static JsonNode parse(String json) {
    try {
      return MAPPER.readTree(json);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e);
    }
  }
}

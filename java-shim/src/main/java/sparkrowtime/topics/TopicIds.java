package sparkrowtime.topics;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The ids of topics, which the brokers say: a topic that was deleted and created again has another one. Asks with the client
 * that Spark's Kafka source brings, found by its name, and with the options of that source. Where this client is not
 * there, or the brokers do not answer it, the ids are not known; that is logged, and asked again a minute later.
 */
public final class TopicIds implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");
  private static final String ADMIN = "org.apache.kafka.clients.admin.Admin";
  private static final String PREFIX = "kafka.";
  private static final String NONE = "AAAAAAAAAAAAAAAAAAAAAA";
  private static final long ANSWER_MS = 10_000;
  private static final long PAUSE_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final ClassLoader loader;
  private final Map<String, Object> settings = new HashMap<>();
  private AutoCloseable admin;
  private Long failedAt;

  /**
   * @param source Spark's Kafka source
   * @param options its options
   */
  public TopicIds(Object source, CaseInsensitiveStringMap options) {
    loader = source.getClass().getClassLoader();
    options.asCaseSensitiveMap().forEach(this::add);
    settings.put("default.api.timeout.ms", Long.toString(ANSWER_MS));
    settings.put("request.timeout.ms", Long.toString(ANSWER_MS));
  }

  private void add(String option, String value) {
    if (option.regionMatches(true, 0, PREFIX, 0, PREFIX.length())) {
      settings.put(option.substring(PREFIX.length()), value);
    }
  }

  /** The id of each of the topics that there are, as far as the brokers can be asked. */
  public Map<String, String> of(Set<String> topics) {
    if (failedAt != null && System.nanoTime() - failedAt < PAUSE_NANOS) {
      return Map.of();
    }
    try {
      return asked(topics);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Map.of();
    } catch (Exception | LinkageError e) {
      failedAt = System.nanoTime();
      LOG.warn("The ids of the topics {} are not known, so a topic that is created again may not be noticed.", topics, e);
      return Map.of();
    }
  }

  private Map<String, String> asked(Set<String> topics) throws Exception {
    Class<?> kind = Class.forName(ADMIN, true, loader);
    if (admin == null) {
      admin = (AutoCloseable) kind.getMethod("create", Map.class).invoke(null, settings);
    }
    Object answer = kind.getMethod("describeTopics", Collection.class).invoke(admin, topics);
    Map<?, ?> found = (Map<?, ?>) answer.getClass().getMethod("topicNameValues").invoke(answer);
    Map<String, String> ids = new HashMap<>();
    for (Map.Entry<?, ?> topic : found.entrySet()) {
      Object described = described(topic.getValue());
      Object id = described == null ? NONE : described.getClass().getMethod("topicId").invoke(described);
      if (!id.toString().equals(NONE)) {
        ids.put((String) topic.getKey(), id.toString());
      }
    }
    return ids;
  }

  /** What a future of Kafka's client has; null if there is no such topic, of which Spark's source says more. */
  private static Object described(Object future) throws Exception {
    try {
      Object stage = future.getClass().getMethod("toCompletionStage").invoke(future);
      return ((CompletionStage<?>) stage).toCompletableFuture()
          .get(ANSWER_MS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException e) {
      if (e.getCause().getClass().getSimpleName().equals("UnknownTopicOrPartitionException")) {
        return null;
      }
      throw e;
    }
  }

  @Override
  public void close() {
    AutoCloseable open = admin;
    admin = null;
    try {
      if (open != null) {
        open.close();
      }
    } catch (Exception e) {
      LOG.debug("The client that asks for the ids of topics could not be closed.", e);
    }
  }
}

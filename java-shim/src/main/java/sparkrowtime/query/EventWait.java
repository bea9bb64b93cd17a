package sparkrowtime.query;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.DoublePredicate;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.Trigger;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;

/**
 * Lets a query without news wait within {@code latestOffset}, so that Spark's loop turns every two seconds while no
 * news come, and not a hundred times a second. Used only in the query's thread.
 *
 * <p>One stream waits for all streams of the query: the first that Spark asks in each turn, so that the others are asked
 * in the same turn. It asks its Python process again and again whether there are news, for a longer time the longer there
 * were none. Between two questions it sees whether the query is stopped, or asked whether it has processed all rows.
 * Where the query also has other sources, whose news nobody can tell, the wait is one short question.
 */
public final class EventWait {
  private static final double SHORTEST_SECONDS = 0.005;
  private static final double LONGEST_SECONDS = 0.2;
  private static final long TURN_NANOS = TimeUnit.SECONDS.toNanos(2);

  private final MicroBatchExecution execution;
  private RowtimeStream first;
  private double seconds = SHORTEST_SECONDS;
  private long end;

  public EventWait(MicroBatchExecution execution) {
    this.execution = execution;
  }

  /** Spark asks this stream for news. */
  public void begin(RowtimeStream stream) {
    if (first == null) {
      first = stream;
    }
    if (!isIdle()) {
      seconds = SHORTEST_SECONDS;
    }
    end = System.nanoTime() + TURN_NANOS;
  }

  /**
   * Whether this stream, which has no news, shall be asked again now. If so, there were news within a time for which
   * {@code isNews} was asked to wait.
   */
  public boolean heard(RowtimeStream stream, DoublePredicate isNews) {
    if (stream != first || !Trigger.ProcessingTime(0).equals(execution.trigger())) {
      return false;
    }
    do {
      if (isNews.test(seconds)) {
        seconds = SHORTEST_SECONDS;
        return sources().size() == 1;
      }
      seconds = isIdle() && knowsAll() ? Math.min(2 * seconds, LONGEST_SECONDS) : SHORTEST_SECONDS;
    } while (isIdle() && knowsAll() && System.nanoTime() < end);
    return false;
  }

  /** The paths of the query's other rowtime streams. */
  public Set<String> others(RowtimeStream stream) {
    Set<String> paths = new LinkedHashSet<>();
    for (SparkDataStream source : sources()) {
      if (source != stream && source instanceof RowtimeStream other && other.path() != null) {
        paths.add(other.path());
      }
    }
    return paths;
  }

  private List<SparkDataStream> sources() {
    return Scala.list(execution.sources());
  }

  private boolean knowsAll() {
    return sources().stream().allMatch(source -> source instanceof RowtimeStream stream && stream.path() != null);
  }

  /** Whether the last turn brought nothing, and nobody waits for the end of this turn. */
  private boolean isIdle() {
    return execution.noNewData() && execution.isActive() && !execution.awaitProgressLock().hasQueuedThreads();
  }
}

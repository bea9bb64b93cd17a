package sparkrowtime.sink;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.ByName;
import sparkrowtime.support.ShimMismatch;

/**
 * The physical rule that puts the bound of a batch into its commit of an Iceberg table. Iceberg has a call for code that gives
 * properties to the commits of a thread; Spark commits in the query's thread.
 */
public final class TableCommits extends WriteRule {
  private static final String WRITES = "org.apache.iceberg.spark.source.";
  private static final String METADATA = "org.apache.iceberg.spark.CommitMetadata";

  @Override
  boolean concerns(StreamingWrite write) {
    return write.getClass().getName().startsWith(WRITES);
  }

  @Override
  BatchWrite replaced(MicroBatchWrite batch, BoundedQuery query) {
    return new Bounded(batch, query);
  }

  /** The write of one batch of a query with bounds. */
  private static final class Bounded extends PassingWrite {
    Bounded(MicroBatchWrite batch, BoundedQuery query) {
      super(batch, query);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
      Map<String, String> properties = query.committedProperties();
      if (properties.isEmpty()) {
        batch.commit(messages);
      } else {
        with(properties, () -> batch.commit(messages));
      }
    }

    private void with(Map<String, String> properties, Runnable commit) {
      Callable<Void> called = () -> {
        commit.run();
        return null;
      };
      ByName.callStatic(given(), properties, called, RuntimeException.class);
    }

    private Method given() {
      try {
        Class<?> metadata = Class.forName(METADATA, true, batch.writeSupport().getClass().getClassLoader());
        return metadata.getMethod("withCommitProperties", Map.class, Callable.class, Class.class);
      } catch (ReflectiveOperationException e) {
        throw new ShimMismatch("Iceberg's " + METADATA + ".withCommitProperties", e);
      }
    }
  }
}

package sparkrowtime.compat;

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.streaming.StreamingSourceIdentifyingName;
import org.apache.spark.sql.catalyst.streaming.UserProvided;
import sparkrowtime.support.Scala;

/** The names of {@code readStream.name}, by which a query's checkpoint knows its sources. */
public final class SourceNames {
  private SourceNames() {}

  /**
   * A stream of bounds whose name is that of the topic beside it, with {@code suffix}; as it is where the topic has none.
   */
  public static StreamingRelationV2 ofTopic(StreamingRelationV2 bounds, StreamingRelationV2 topic, String suffix) {
    return topic.sourceIdentifyingName() instanceof UserProvided given
        ? Scala.copy(bounds, StreamingSourceIdentifyingName.class, new UserProvided(given.name() + suffix))
        : bounds;
  }
}

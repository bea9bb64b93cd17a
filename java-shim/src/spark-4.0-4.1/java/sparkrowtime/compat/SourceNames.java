package sparkrowtime.compat;

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;

/** The names of sources, which Spark 4.0 and 4.1 do not have. */
public final class SourceNames {
  private SourceNames() {}

  /** The stream of bounds as it is. */
  public static StreamingRelationV2 ofTopic(StreamingRelationV2 bounds, StreamingRelationV2 topic, String suffix) {
    return bounds;
  }
}

package sparkrowtime.query;

import java.util.function.ToLongFunction;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Shown;

/**
 * Refuses a checkpoint whose watermark is above what the bounds say at its offsets: that of a run which had a watermark of
 * its own, since it ignored the bounds or had no extension. The query's watermark never falls, so rows between the bounds
 * and it would be lost as late. Called when the first batch of a run is planned, in the query's thread.
 *
 * <p>Law: a run of the extension leaves no such checkpoint. Its watermark follows bounds that are functions of offsets. Where
 * they are not, nothing is compared: tables ({@link LateBatch} keeps their rows), topics ({@link TopicBatch} compares them),
 * a source that is new, and times that follow the rows of ordinary sources.
 */
final class RefuseHigherWatermark {
  private static final long NOT_COMPARED = EndOfTime.floor(Bound.UNLIMITED - 1);

  private RefuseHigherWatermark() {}

  /** @param watermark that of the batch that is planned, in milliseconds */
  static void check(BoundedQuery query, long watermark) {
    StreamExecutionContext context = query.spark().getLatestExecutionContext();
    check(query, context.startOffsets(), LoggedWatermark.of(query.spark(), context.batchId() - 1));
    check(query, context.endOffsets(), watermark);
  }

  private static void check(BoundedQuery query, StreamProgress offsets, long watermark) {
    ToLongFunction<SparkDataStream> floors =
        stream -> isCompared(stream) && offsets.contains(stream) ? query.floor(offsets, stream) : NOT_COMPARED;
    long most = query.nodes().highest(floors);
    if (watermark > most) {
      throw new IllegalArgumentException(
          "The checkpoint of this query, " + query.spark().resolvedCheckpointRoot() + ", has the watermark "
              + Shown.time(watermark * 1000) + ", but at its offsets the bounds of the streams "
              + (most == 0 ? "say nothing yet" : "are only at " + Shown.time(most * 1000))
              + ". An earlier run made that watermark without the bounds: with bounds=\"ignore\" and withWatermark, or without"
              + " the extension. Rows that are still to come would be below it, and be lost as late. Start the query with a"
              + " new checkpoint and a new output, or go on as the earlier run did.");
    }
  }

  private static boolean isCompared(SparkDataStream stream) {
    return stream instanceof RowtimeStream ours && ours.unionId() == null;
  }
}

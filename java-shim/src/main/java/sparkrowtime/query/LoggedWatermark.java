package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.support.ShimMismatch;

/** The watermark that Spark's offset log has for a batch: in the second line of its file, as JSON. */
final class LoggedWatermark {
  private static final String FIELD = "batchWatermarkMs";

  private LoggedWatermark() {}

  /** In milliseconds; 0 if the log does not have the batch. */
  static long of(MicroBatchExecution query, long batch) {
    String text = batch < 0 ? null : new CheckpointFile(query, "offsets/" + batch).text();
    return text == null ? 0 : of(text);
  }

  private static long of(String text) {
    String[] lines = text.split("\n", 3);
    try {
      JsonNode found = lines.length < 2 ? null : new ObjectMapper().readTree(lines[1]).get(FIELD);
      if (found != null && found.isNumber()) {
        return found.asLong();
      }
    } catch (JsonProcessingException e) {
      throw new ShimMismatch("JSON in the second line of a file of the offset log, not " + lines[1], e);
    }
    throw new ShimMismatch("a field " + FIELD + " in the second line of a file of the offset log", null);
  }
}

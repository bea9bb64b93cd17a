package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.streaming.OutputMode;

/**
 * Refuses a query that writes into a rowtime stream in update or complete mode. A stream is append-only, and
 * without this check the query fails only in its first batch, in update mode with a text that says no more
 * than that.
 */
final class RefuseOtherModes {
  private static final String SINK = "rowtime";

  private RefuseOtherModes() {}

  static void check(WriteToStreamStatement query) {
    OutputMode mode = query.outputMode();
    // The sink of foreachBatch is no SupportsWrite, and its name() throws.
    boolean intoRowtime = query.sink() instanceof SupportsWrite table && SINK.equals(table.name());
    if (intoRowtime && !mode.equals(OutputMode.Append())) {
      throw new IllegalArgumentException(
          "A rowtime sink takes outputMode(\"append\") only: "
              + (mode.equals(OutputMode.Complete()) ? "complete" : "update")
              + " mode emits a result more than once. Leave outputMode out: with bounds, append mode gives each result"
              + " once, as soon as it is final.");
    }
  }
}

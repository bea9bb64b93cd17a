package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Refuses a watermark above another one. Spark refuses it only when it plans the first batch, since the
 * operators between the two would have both.
 */
final class RefuseSecondWatermark {
  private RefuseSecondWatermark() {}

  static void check(LogicalPlan node) {
    if (node instanceof EventTimeWatermark watermark
        && watermark.child().exists(EventTimeWatermark.class::isInstance)) {
      throw new IllegalArgumentException(message(watermark));
    }
  }

  private static String message(EventTimeWatermark watermark) {
    String column = "withWatermark(\"" + watermark.eventTime().name() + "\", ...)";
    LogicalPlan keeping = Scala.orNull(watermark.child().find(Scala.function(StatefulNodes::keepsRows)));
    if (keeping == null) {
      return column + " is above another withWatermark: in one query a time has one watermark. Remove one of them.";
    }
    return column + " is above " + keeping.nodeName() + ", whose rows have a watermark already: in one query a time"
        + " has one watermark. Put withWatermark before the " + keeping.nodeName() + ", or leave it out: a rowtime"
        + " stream has a watermark of its own, and results keep it in their window and rowtime columns. The time of"
        + " a window for the next aggregation is window_time(window), or window(window, <size>). For any other time"
        + " write the results to a stream, and read that in a second query.";
  }
}

package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Refuses a watermark on a window, or on another struct, in a query that keeps rows. Its bound is not known, and no window
 * would be complete.
 */
final class RefuseStructWatermark {
  private RefuseStructWatermark() {}

  static void check(LogicalPlan plan) {
    if (plan.exists(Scala.function(StatefulNodes::keepsRows))) {
      plan.foreach(Scala.each(RefuseStructWatermark::checkNode));
    }
  }

  private static void checkNode(LogicalPlan node) {
    if (node instanceof EventTimeWatermark watermark && watermark.eventTime().dataType() instanceof StructType) {
      String column = watermark.eventTime().name();
      throw new IllegalArgumentException(
          "withWatermark(\"" + column + "\", ...) is on a struct, and the bounds of streams are not known for it: no window"
              + " would be complete by them. Leave it out, since a rowtime stream has a watermark of its own, and its"
              + " windows have it, too; for a window of another column, or of another source, put it on that time below the"
              + " window.");
    }
  }
}

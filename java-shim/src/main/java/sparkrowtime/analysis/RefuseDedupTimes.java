package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses dropDuplicatesWithinWatermark by a time that is a window, or that can be NULL. Spark takes for either a time
 * about 1970, and forgets the key with its batch, so that later duplicates come out.
 */
final class RefuseDedupTimes {
  private final Definitions definitions;

  private RefuseDedupTimes(LogicalPlan plan) {
    definitions = new Definitions(plan);
  }

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(new RefuseDedupTimes(plan)::checkNode));
  }

  private void checkNode(LogicalPlan node) {
    if (node instanceof DeduplicateWithinWatermark dedup && dedup.isStreaming()) {
      Scala.list(dedup.child().output()).stream()
          .filter(Rowtime::isWatermarked)
          .findFirst()
          .ifPresent(time -> checkTime(time, dedup.child()));
    }
  }

  private void checkTime(Attribute time, LogicalPlan input) {
    NullableTimes times = new NullableTimes(definitions);
    if (time.dataType() instanceof StructType) {
      refuse(time, "is a struct", "Take a time of it below: window_time(" + time.sql() + ")");
    } else if (times.canBeNull(time, input)) {
      refuse(time, "can be NULL, since " + times.reason(), "Leave out the rows without it (WHERE " + time.sql()
          + " IS NOT NULL), or " + times.instead().replace("group by", "use"));
    }
  }

  private static void refuse(Attribute time, String why, String instead) {
    throw new IllegalArgumentException(
        "dropDuplicatesWithinWatermark goes by " + time.sql() + ", which " + why + ". Spark would forget each key with its"
            + " batch, and later duplicates would come out. " + instead + ".");
  }
}

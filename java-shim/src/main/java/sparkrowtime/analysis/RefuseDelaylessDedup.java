package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import sparkrowtime.support.Scala;

/**
 * The check rule for dropDuplicatesWithinWatermark. It needs a delay, for which it looks for duplicates,
 * and so the user's own withWatermark. The automatic watermark has no delay, so the operator is refused
 * on it, as Spark refuses it without a watermark.
 */
public final class RefuseDelaylessDedup extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    plan.foreach(Scala.each(RefuseDelaylessDedup::check));
    return BoxedUnit.UNIT;
  }

  private static void check(LogicalPlan node) {
    if (node instanceof DeduplicateWithinWatermark && AutoWatermark.isIn(node)) {
      throw new IllegalArgumentException(
          "dropDuplicatesWithinWatermark on a rowtime stream needs withWatermark(\"rowtime\","
              + " <delay>) before it: the delay determines how long duplicates are looked for. The"
              + " automatic watermark of the stream has no delay.");
    }
  }
}

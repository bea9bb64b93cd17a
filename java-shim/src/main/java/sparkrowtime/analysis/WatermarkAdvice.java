package sparkrowtime.analysis;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.bounds.Origin;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Warns of a user's withWatermark on a time of which no bound of the streams below it speaks, as it is left over when
 * another source is replaced. Called when a query is started. Without an operator that keeps rows it changes nothing.
 */
final class WatermarkAdvice {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  private WatermarkAdvice() {}

  static void give(LogicalPlan plan) {
    if (plan.exists(Scala.function(StatefulNodes::keepsRows))) {
      PlanBounds bounds = PlanBounds.possible(plan);
      Scala.list(plan.collect(Scala.only(EventTimeWatermark.class))).stream()
          .map(EventTimeWatermark.class::cast)
          .filter(node -> readsBoundsAlone(node.child()) && bounds.of(node.child()).get(node.eventTime()) == null)
          .forEach(WatermarkAdvice::warn);
    }
  }

  private static boolean readsBoundsAlone(LogicalPlan plan) {
    List<LogicalPlan> sources = Scala.list(plan.collectLeaves()).stream().filter(LogicalPlan::isStreaming).toList();
    return sources.stream().allMatch(RowtimeReads::isRowtime);
  }

  private static void warn(EventTimeWatermark node) {
    String column = node.eventTime().name();
    String made = Origin.expression(node.eventTime(), node.child());
    LOG.warn(
        "withWatermark(\"{}\", ...) is on {}, of which no bound of the rowtime streams speaks. So this query goes by"
            + " Spark's rules: the watermark follows the largest {} of the rows, later rows below it are dropped, and a"
            + " result waits for a later row, or for the end of the streams. Remove withWatermark and group or join by"
            + " rowtime, which needs none; or write the rows into a stream whose rowtime is {}.",
        column,
        made == null ? "another column than rowtime" : made,
        column,
        column);
  }
}

package sparkrowtime.query;

import java.time.ZoneId;
import java.time.zone.ZoneRules;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TimestampAddInterval;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.Monotonic;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * The time zone in which a query's first run computed times such as {@code date_trunc('DAY', rowtime)}, or
 * {@code rowtime + INTERVAL 1 DAY} in the condition of a join. In another zone, a later run would compute
 * times below what the first run promised, or would match rows that the first run has freed. Spark's offset
 * log does not contain the zone, so it is in a file of the checkpoint, {@value #FILE}: zone ids separated by
 * commas. Called once a run, in the query's thread.
 *
 * <p>Law: a query without a bound or an eviction that depends on a zone has no such file, and runs in any
 * zone.
 */
final class FirstZone {
  private static final String FILE = "rowtime-zones";

  private FirstZone() {}

  static void require(MicroBatchExecution query) {
    String now = String.join(",", zones(query.logicalPlan()));
    if (!now.isEmpty()) {
      CheckpointFile file = new CheckpointFile(query, FILE);
      refuseOther(file.first(query.offsetLog().getLatest().isEmpty(), now), now, file.checkpoint());
    }
  }

  private static void refuseOther(String first, String now, Path checkpoint) {
    if (!rules(first).equals(rules(now))) {
      throw new IllegalArgumentException(
          "The first run of this query computed its times in the time zone " + first + ", this run computes them in "
              + now + ": date_trunc and casts between TIMESTAMP and DATE would give times below what the query has"
              + " promised, and a join within a number of days has freed rows that could now match. Set"
              + " spark.sql.session.timeZone to " + first + " before the DataFrame is made, or start the query with a"
              + " new checkpoint and a new output (this one is " + checkpoint + ").");
    }
  }

  private static Set<ZoneRules> rules(String zones) {
    return Stream.of(zones.split(",")).map(zone -> ZoneId.of(zone).getRules()).collect(Collectors.toSet());
  }

  /** The ids of the zones that the bound of some column of the plan, or the eviction of a join, depends on. */
  static Set<String> zones(LogicalPlan plan) {
    PlanBounds bounds = PlanBounds.possible(plan);
    Set<String> zones = new TreeSet<>();
    plan.foreach(Scala.each(node -> addZones(node, bounds, zones)));
    return zones;
  }

  private static void addZones(LogicalPlan node, PlanBounds bounds, Set<String> zones) {
    if (StatefulNodes.isStreamJoin(node) || node instanceof Filter && node.exists(StatefulNodes::isStreamJoin)) {
      forEachPart(node, part -> addDays(part, zones));
    }
    if (!(node instanceof Project || node instanceof Aggregate || node instanceof Expand)) {
      return;
    }
    ExprBounds below = new ExprBounds(bounds.of(node.children().apply(0)));
    forEachPart(node, part -> addZone(part, below, zones));
  }

  /** The parts of the node's expressions, as they will run. */
  private static void forEachPart(LogicalPlan node, Consumer<Expression> action) {
    Scala.list(node.expressions()).forEach(e -> ExprBounds.asRun(e).foreach(Scala.each(action)));
  }

  private static void addZone(Expression e, ExprBounds below, Set<String> zones) {
    ZoneId zone = Monotonic.zone(e);
    Bound bound = zone == null ? null : below.of(e);
    if (bound != null && !bound.isOrdinary()) {
      zones.add(zone.getId());
    }
  }

  /** A join frees rows by the length of the days in its condition. Spark makes filters above it a part of that. */
  private static void addDays(Expression e, Set<String> zones) {
    if (e instanceof TimestampAddInterval add && add.right().foldable() && !Monotonic.isBelowDay(add)) {
      zones.add(add.zoneId().getId());
    }
  }
}

package sparkrowtime.query;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.ZoneId;
import java.time.zone.ZoneRules;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.Evictions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.Monotonic;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.bounds.RowsSeen;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The time zone in which a query's first run computed times such as {@code date_trunc('DAY', rowtime)}.
 * In another zone, a later run would compute times below what the first run promised. Spark's offset log
 * does not contain the zone, so it is in a file of the checkpoint, {@value #FILE}: zone ids separated by
 * commas. Called once a run, in the query's thread.
 *
 * <p>Law: a query whose bounds do not depend on a zone has no such file, and runs in any zone.
 */
final class FirstZone {
  private static final String FILE = "rowtime-zones";

  /** Evictions as if each operator that keeps rows had evicted something, so that its times have a bound. */
  private static final Evictions KNOWN =
      new Evictions() {
        @Override
        public Long ofGroups(Attribute by) {
          return Rowtime.isWatermarked(by) ? 0L : null;
        }

        @Override
        public Long ofJoins(Attribute time) {
          return ofGroups(time);
        }

        @Override
        public Long followed() {
          return 0L;
        }
      };

  private FirstZone() {}

  static void require(MicroBatchExecution query) {
    String now = String.join(",", zones(query.logicalPlan()));
    if (now.isEmpty()) {
      return;
    }
    try {
      require(query, now);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void require(MicroBatchExecution query, String now) throws IOException {
    Path root = new Path(query.resolvedCheckpointRoot());
    Path file = new Path(root, FILE);
    CheckpointFileManager files =
        CheckpointFileManager.create(root, query.sparkSessionForStream().sessionState().newHadoopConf());
    if (query.offsetLog().getLatest().isEmpty() || !files.exists(file)) {
      write(files, file, now);
    } else {
      refuseOther(read(files, file), now, root);
    }
  }

  private static void write(CheckpointFileManager files, Path file, String zones) throws IOException {
    if (files.exists(file)) {
      files.delete(file);  // Spark's rename does not replace a file everywhere
    }
    try (var out = files.createAtomic(file, false)) {
      out.write(zones.getBytes(StandardCharsets.UTF_8));
    }
  }

  private static String read(CheckpointFileManager files, Path file) throws IOException {
    try (var in = files.open(file)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private static void refuseOther(String first, String now, Path checkpoint) {
    if (!rules(first).equals(rules(now))) {
      throw new IllegalArgumentException(
          "The first run of this query computed its times in the time zone " + first + ", this run computes them in "
              + now + ": date_trunc and casts between TIMESTAMP and DATE would give times below what the query has"
              + " promised. Set spark.sql.session.timeZone to " + first + " before the DataFrame is made, or start"
              + " the query with a new checkpoint and a new output (this one is " + checkpoint + ").");
    }
  }

  private static Set<ZoneRules> rules(String zones) {
    return Stream.of(zones.split(",")).map(zone -> ZoneId.of(zone).getRules()).collect(Collectors.toSet());
  }

  /** The ids of the zones that the bound of some column of the plan depends on. */
  static Set<String> zones(LogicalPlan plan) {
    PlanBounds bounds = new PlanBounds(new Definitions(plan), stream -> 0L, KNOWN, new RowsSeen(stream -> null));
    Set<String> zones = new TreeSet<>();
    plan.foreach(Scala.each(node -> addZones(node, bounds, zones)));
    return zones;
  }

  private static void addZones(LogicalPlan node, PlanBounds bounds, Set<String> zones) {
    if (!(node instanceof Project || node instanceof Aggregate || node instanceof Expand)) {
      return;
    }
    ExprBounds below = new ExprBounds(bounds.of(node.children().apply(0)));
    for (Expression e : Scala.list(node.expressions())) {
      e.foreach(Scala.each(part -> addZone(part, below, zones)));
    }
  }

  private static void addZone(Expression e, ExprBounds below, Set<String> zones) {
    ZoneId zone = Monotonic.zone(e);
    Bound bound = zone == null ? null : below.of(e);
    if (bound != null && !bound.isOrdinary()) {
      zones.add(zone.getId());
    }
  }
}

package sparkrowtime.analysis;

import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.analysis.SQLFunctionNode;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.PipeOperator;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The watermark node that a rowtime stream gets without the user's withWatermark (option watermark,
 * auto or none). Its delay is zero; {@link sparkrowtime.query.WatermarkNodes} makes it follow the bound.
 *
 * <p>Law: a query with an automatic node below one of the user's is refused. An automatic node stays on
 * rowtime through projections. If a projection changes rowtime in a monotonic way, the node moves above
 * it, unless an operator in between keeps rows by it.
 */
final class AutoWatermark {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** The high half of the ids of automatic nodes. */
  private static final long MARK = 0x726f7774696d6500L;

  private AutoWatermark() {}

  static boolean isAutomatic(LogicalPlan node) {
    return node instanceof EventTimeWatermark w && w.nodeId().getMostSignificantBits() == MARK;
  }

  static EventTimeWatermark on(Attribute column, LogicalPlan child) {
    UUID id = new UUID(MARK, ThreadLocalRandom.current().nextLong());
    return new EventTimeWatermark(id, column, new CalendarInterval(0, 0, 0), child);
  }

  /** Called once per relation, after it has got its bounded table. */
  static LogicalPlan above(StreamingRelationV2 relation) {
    String option = relation.extraOptions().getOrDefault("watermark", "auto");
    if (!option.equals("auto") && !option.equals("none")) {
      throw new IllegalArgumentException(
          "Option watermark of a rowtime stream is auto or none, not '" + option + "'.");
    }
    Attribute rowtime =
        Scala.list(relation.output()).stream()
            .map(a -> (Attribute) a)
            .filter(Rowtime::isRowtime)
            .findFirst()
            .orElse(null);
    return option.equals("none") || rowtime == null ? relation : on(rowtime, relation);
  }

  /**
   * The user's own node replaces the automatic ones below it, unless an operator in between keeps rows by
   * them. In that case {@link RefuseSecondWatermark} refuses the query.
   */
  static LogicalPlan replacedBy(EventTimeWatermark node) {
    boolean nested = !isAutomatic(node) && isIn(node.child());
    boolean needed = nested && node.child().exists(StatefulNodes::keepsRows);
    return nested && !needed ? with(node, List.of(without(node.child()))) : node;
  }

  static boolean isIn(LogicalPlan plan) {
    return plan.exists(AutoWatermark::isAutomatic);
  }

  private static LogicalPlan without(LogicalPlan plan) {
    LogicalPlan below = isAutomatic(plan) ? plan.children().apply(0) : plan;
    return with(below, Scala.list(below.children()).stream().map(AutoWatermark::without).toList());
  }

  /** In select((rowtime + INTERVAL 1 HOUR).alias("rowtime")) Spark's mark is lost, so the node moves up. */
  static LogicalPlan movedUp(Project project) {
    boolean loses = project.resolved() && Scala.list(project.output()).stream().noneMatch(Rowtime::isWatermarked);
    Alias derived = loses ? derived(project) : null;
    return derived == null ? project : movedTo(derived, project);
  }

  /** Moves the automatic node from below {@code project} to above it, onto one of its columns. */
  static LogicalPlan movedTo(Alias column, Project project) {
    return movedTo(column.toAttribute(), project);
  }

  /** Moves the automatic node from within {@code plan} to above it, onto one of its columns. */
  static LogicalPlan movedTo(Attribute column, LogicalPlan plan) {
    return on(column, without(plan));
  }

  /**
   * Whether each stream has an automatic node, with no operator above it that keeps rows. Such an operator
   * needs the watermark below it.
   */
  private static boolean canMove(LogicalPlan plan) {
    List<LogicalPlan> streams = Scala.list(plan.children()).stream().filter(LogicalPlan::isStreaming).toList();
    return isAutomatic(plan)
        || passesRows(plan) && !streams.isEmpty() && streams.stream().allMatch(AutoWatermark::canMove);
  }

  /** Whether an operator outputs rows of its input, in the same batch and with the same times, and no others. */
  private static boolean passesRows(LogicalPlan plan) {
    return plan instanceof Project
        || plan instanceof Filter
        || plan instanceof SubqueryAlias
        || plan instanceof View
        || plan instanceof PipeOperator
        || plan instanceof SQLFunctionNode
        || plan instanceof Generate
        || plan instanceof RepartitionOperation
        || plan instanceof RebalancePartitions
        || plan instanceof ResolvedHint
        || plan instanceof CollectMetrics
        || plan instanceof Union
        || plan instanceof Join && !StatefulNodes.isStreamJoin(plan);
  }

  /** The bounds of expressions to which a plan's automatic node can be moved; null if the node cannot move. */
  static ExprBounds boundsOver(LogicalPlan plan) {
    return canMove(plan) ? new ExprBounds(new PlanBounds(new Definitions(plan), stream -> 0L).of(plan)) : null;
  }

  /** Of the columns that the bound can follow, the one named rowtime, or the only one. */
  private static Alias derived(Project project) {
    ExprBounds bounds = boundsOver(project.child());
    if (bounds == null) {
      return null;
    }
    List<Alias> candidates =
        Scala.list(project.projectList()).stream()
            .filter(e -> e instanceof Alias a && a.dataType() instanceof TimestampType)
            .map(e -> (Alias) e)
            .filter(a -> bounds.of(a) != null)
            .toList();
    return candidates.stream()
        .filter(a -> a.name().equals(Rowtime.COLUMN))
        .findFirst()
        .orElse(candidates.size() == 1 ? candidates.get(0) : null);
  }

  /**
   * In a union with a stream that has no watermark, the automatic one would make that stream's rows late
   * by a bound that says nothing about them. So it is removed, and Spark asks for the user's
   * withWatermark, unless option punctuate says that the bound holds for the others, too. It stays below an operator
   * that keeps rows by it: what keeps rows by the union is refused then ({@link RefuseUnknownTimes}).
   */
  static LogicalPlan notWithOrdinary(Union union) {
    List<LogicalPlan> children = Scala.list(union.children());
    boolean mixed =
        union.resolved() && children.stream().anyMatch(c -> c.isStreaming() && !isMarkedAs(children, c));
    if (!mixed || children.stream().noneMatch(AutoWatermark::canLose)) {
      return union;
    }
    boolean keeps = children.stream().anyMatch(c -> isIn(c) && c.exists(StatefulNodes::keepsRows));
    LOG.warn(
        "A union of a rowtime stream with a stream or a column that has no watermark has none: the bound"
            + " does not hold for the rows of the other input. "
            + (keeps
                ? "Of what keeps rows below the union, write the results into a stream, and read that in a second query,"
                    + " if rows are to be kept by the union's time."
                : "Call withWatermark(\"rowtime\", <delay>) on the union (the weaker of bound and data then counts), or"
                    + " set option punctuate=true on the rowtime stream if its bound also holds for the other input."));
    return with(union, children.stream().map(c -> canLose(c) ? without(c) : c).toList());
  }

  /** Whether a child has Spark's mark in each column in which another has it. */
  private static boolean isMarkedAs(List<LogicalPlan> children, LogicalPlan child) {
    return IntStream.range(0, child.output().size())
        .allMatch(
            i -> Rowtime.isWatermarked(child.output().apply(i))
                || children.stream().noneMatch(c -> Rowtime.isWatermarked(c.output().apply(i))));
  }

  private static boolean canLose(LogicalPlan plan) {
    return isIn(plan)
        && !plan.exists(StatefulNodes::keepsRows)
        && !plan.exists(node -> node instanceof StreamingRelationV2 r
            && r.extraOptions().getBoolean("punctuate", false));
  }

  static LogicalPlan with(LogicalPlan node, List<LogicalPlan> children) {
    return node.withNewChildren(Scala.seq(children).toIndexedSeq());
  }
}

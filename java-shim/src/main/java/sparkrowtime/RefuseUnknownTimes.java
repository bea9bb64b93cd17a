package sparkrowtime;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;

/**
 * Spark takes a column for the event time by a mark in its metadata. The mark comes along where the
 * time does not: with a schema ({@code mapInPandas(f, df.schema)}), out of a struct, from the first
 * side of a union. An operator that keeps rows would drop those that the watermark of another column
 * calls late. Called once a query, in its thread.
 *
 * <p>Law: the time by which an operator keeps rows comes from a watermark node, through columns only.
 */
final class RefuseUnknownTimes {
  private final Definitions definitions;

  private RefuseUnknownTimes(LogicalPlan plan) {
    definitions = new Definitions(plan);
  }

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(new RefuseUnknownTimes(plan)::checkNode));
  }

  private void checkNode(LogicalPlan node) {
    times(node)
        .filter(a -> Rowtime.isWatermarked(a) && isUnknown(a, node))
        .findFirst()
        .ifPresent(
            a -> {
              throw new IllegalArgumentException(
                  node.nodeName() + " keeps rows by the time " + a.name() + ", but no watermark says how far that"
                      + " has come: the column only has the mark of one. It is made by a function with another's"
                      + " schema (give mapInPandas its schema as text), comes out of a struct, or from a union"
                      + " with a stream or a column that has no watermark. Call withWatermark on it, after that;"
                      + " of a union, option punctuate=true on the rowtime stream says that its bound speaks for"
                      + " the other too.");
            });
  }

  /** The columns by which a node may keep rows. */
  private static Stream<Attribute> times(LogicalPlan node) {
    if (!node.isStreaming()) {
      return Stream.of();
    } else if (node instanceof Aggregate aggregate) {
      return references(Scala.list(aggregate.groupingExpressions()).stream());
    } else if (node instanceof Deduplicate deduplicate) {
      return Scala.list(deduplicate.keys()).stream();
    } else if (node instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      return references(Stream.ofNullable(Scala.orNull(join.condition())));
    } else if (node instanceof DeduplicateWithinWatermark
        || node instanceof FlatMapGroupsWithState
        || node instanceof FlatMapGroupsInPandasWithState
        || node instanceof TransformWithState
        || node instanceof TransformWithStateInPySpark) {
      return Scala.list(node.children()).stream()
          .filter(LogicalPlan::isStreaming)
          .flatMap(c -> Scala.list(c.output()).stream());
    }
    return Stream.of();
  }

  private static Stream<Attribute> references(Stream<? extends Expression> expressions) {
    return expressions.flatMap(e -> Scala.list(e.references().toSeq()).stream());
  }

  private boolean isUnknown(Attribute column, LogicalPlan node) {
    return Scala.list(node.children()).stream()
        .filter(c -> c.outputSet().contains(column))
        .noneMatch(c -> isKnown(column, c));
  }

  /** Whether {@code column}, which {@code plan} has, comes from a watermark node. */
  private boolean isKnown(Attribute column, LogicalPlan plan) {
    if (isWatermarkOn(column, plan) || Rowtime.follows(column)) {
      return true;
    } else if (plan instanceof Project project) {
      return comesFrom(column, Scala.list(project.projectList()), plan);
    } else if (plan instanceof Aggregate aggregate) {
      return comesFrom(column, Scala.list(aggregate.aggregateExpressions()), plan);
    } else if (plan instanceof Expand expand) {
      int place = Definitions.place(column, plan);
      return Scala.list(expand.projections()).stream().map(p -> p.apply(place)).allMatch(e -> isGiven(e, plan));
    } else if (plan instanceof Union union) {
      return isKnownInUnion(union, Definitions.place(column, plan));
    } else if (definitions.body(plan) != null) {
      return isKnownIn(definitions.body(plan), Definitions.place(column, plan));
    }
    return Scala.list(plan.children()).stream().anyMatch(c -> c.outputSet().contains(column) && isKnown(column, c));
  }

  private boolean isKnownIn(LogicalPlan plan, int place) {
    return isKnown(plan.output().apply(place), plan);
  }

  /** In each child, or in one that speaks for the others. */
  private boolean isKnownInUnion(Union union, int place) {
    List<LogicalPlan> known = Scala.list(union.children()).stream().filter(c -> isKnownIn(c, place)).toList();
    return known.size() == union.children().size() || known.stream().anyMatch(c -> c.exists(RefuseUnknownTimes::speaks));
  }

  private static boolean speaks(Object node) {
    return node instanceof StreamingDataSourceV2ScanRelation r && r.stream() instanceof BoundedStream s && s.speaks();
  }

  private static boolean isWatermarkOn(Attribute column, LogicalPlan plan) {
    return plan instanceof EventTimeWatermark w && w.eventTime().exprId().equals(column.exprId())
        || plan instanceof UpdateEventTimeWatermarkColumn u && u.eventTime().exprId().equals(column.exprId());
  }

  private boolean comesFrom(Attribute column, List<NamedExpression> list, LogicalPlan plan) {
    return list.stream()
        .filter(e -> e.exprId().equals(column.exprId()))
        .anyMatch(e -> isMadeOfKnown((Expression) e, plan));
  }

  private boolean isGiven(Expression e, LogicalPlan plan) {
    return e.foldable() || isMadeOfKnown(e, plan);
  }

  /** A window is made of its time; another expression keeps a mark only from a column or a window's field. */
  private boolean isMadeOfKnown(Expression e, LogicalPlan plan) {
    List<Attribute> marked = references(Stream.of(e)).filter(Rowtime::isWatermarked).toList();
    return !marked.isEmpty() && marked.stream().noneMatch(a -> isUnknown(a, plan));
  }
}

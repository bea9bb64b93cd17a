package sparkrowtime.analysis;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Scala;

/**
 * Decides which time columns of an analyzed plan come from a watermark node. Spark relies on a mark in a
 * column's metadata, which can be copied: {@code alias("rowtime", metadata=...)} and {@code
 * mapInPandas(f, df.schema)} put it on other times. Called when a query is started.
 *
 * <p>Law: a column is known if a watermark node is on it, or if it is a plain copy, a window, or a
 * window's time of such a column. For all other expressions and operators the answer is no.
 */
final class KnownTimes {
  private final Definitions definitions;

  KnownTimes(Definitions definitions) {
    this.definitions = definitions;
  }

  /** Whether {@code column}, a column of a child of {@code node}, comes from a watermark node. */
  boolean isKnownBelow(Attribute column, LogicalPlan node) {
    return Scala.list(node.children()).stream()
        .anyMatch(c -> c.outputSet().contains(column) && isKnown(column, c));
  }

  /** The same for a column of {@code plan} itself. */
  private boolean isKnown(Attribute column, LogicalPlan plan) {
    if (isWatermarkOn(column, plan)) {
      return true;
    } else if (list(plan) != null) {
      return isKnownIn(list(plan), column, plan);
    } else if (plan instanceof Expand expand) {
      int place = Definitions.place(column, plan);
      return Scala.list(expand.projections()).stream().map(p -> p.apply(place)).allMatch(e -> isGiven(e, plan));
    } else if (plan instanceof Union union) {
      return isKnownInUnion(union, Definitions.place(column, plan));
    } else if (definitions.body(plan) != null) {
      return isKnownAt(Definitions.place(column, plan), definitions.body(plan));
    }
    Attribute packed = PackedRows.followed(column, plan);
    return packed != null ? isKnownBelow(packed, plan) : isKnownBelow(column, plan);
  }

  /** The expressions of a node that computes columns; null for other nodes. */
  private static List<NamedExpression> list(LogicalPlan plan) {
    if (plan instanceof Aggregate aggregate) {
      return Scala.list(aggregate.aggregateExpressions());
    }
    return plan instanceof Project project ? Scala.list(project.projectList()) : null;
  }

  private boolean isKnownAt(int place, LogicalPlan plan) {
    return isKnown(plan.output().apply(place), plan);
  }

  /** Known in each child, or in one whose bound also holds for the others (option punctuate). */
  private boolean isKnownInUnion(Union union, int place) {
    List<LogicalPlan> known = Scala.list(union.children()).stream().filter(c -> isKnownAt(place, c)).toList();
    return known.size() == union.children().size() || known.stream().anyMatch(c -> c.exists(KnownTimes::speaks));
  }

  private static boolean speaks(Object node) {
    return node instanceof StreamingRelationV2 r && r.extraOptions().getBoolean("punctuate", false);
  }

  private static boolean isWatermarkOn(Attribute column, LogicalPlan plan) {
    return plan instanceof EventTimeWatermark w && w.eventTime().exprId().equals(column.exprId())
        || plan instanceof UpdateEventTimeWatermarkColumn u && u.eventTime().exprId().equals(column.exprId());
  }

  private boolean isKnownIn(List<NamedExpression> list, Attribute column, LogicalPlan plan) {
    return list.stream()
        .filter(e -> e.exprId().equals(column.exprId()))
        .anyMatch(e -> isMadeOfKnown((Expression) e, plan));
  }

  private boolean isGiven(Expression e, LogicalPlan plan) {
    return e.foldable() || isMadeOfKnown(e, plan);
  }

  private boolean isMadeOfKnown(Expression made, LogicalPlan plan) {
    Expression e = ExprBounds.uncast(made);
    if (e instanceof Attribute a) {
      return isKnownBelow(a, plan);
    } else if (e instanceof Alias || e instanceof TaggingExpression) {
      return isMadeOfKnown(e.children().head(), plan);
    } else if (e instanceof GetStructField field) {
      return isFieldKnown(field.child(), field.ordinal(), plan);
    }
    List<PreciseTimestampConversion> read = WindowBounds.times(e);
    // The first is the start of a window. The end is not earlier: that of a session is the time plus the gap.
    return isWindowOrItsTime(e) && !read.isEmpty() && isMadeOfKnown(read.get(0).child(), plan);
  }

  /** Only Spark's own window(...) and window_time(...) have these conversions. */
  private static boolean isWindowOrItsTime(Expression e) {
    return e instanceof PreciseTimestampConversion
        || e instanceof CreateNamedStruct made
            && Scala.list(made.valExprs()).stream().allMatch(KnownTimes::isConversion);
  }

  private static boolean isConversion(Expression e) {
    return e instanceof PreciseTimestampConversion
        || e instanceof TaggingExpression && isConversion(e.children().head());
  }

  /** Whether a struct's field is a plain copy of a known time, or the end of a known window. */
  private boolean isFieldKnown(Expression value, int field, LogicalPlan plan) {
    Expression struct = ExprBounds.uncast(value);
    if (struct instanceof Alias alias) {
      return isFieldKnown(alias.child(), field, plan);
    } else if (struct instanceof CreateNamedStruct made && !isWindowOrItsTime(made)) {
      return isMadeOfKnown(made.valExprs().apply(field), plan);
    } else if (struct instanceof Attribute a) {
      return field == 1 && isKnownBelow(a, plan) || isFieldKnownBelow(a, field, plan);
    }
    return false;
  }

  private boolean isFieldKnownBelow(Attribute struct, int field, LogicalPlan plan) {
    return Scala.list(plan.children()).stream()
        .filter(c -> c.outputSet().contains(struct))
        .anyMatch(c -> c instanceof Project project
            ? made(struct, project).anyMatch(e -> isFieldKnown(e, field, c))
            : isFieldKnownBelow(struct, field, c));
  }

  private static Stream<Expression> made(Attribute column, Project project) {
    return Scala.list(project.projectList()).stream()
        .filter(e -> e.exprId().equals(column.exprId()))
        .map(e -> (Expression) e);
  }
}

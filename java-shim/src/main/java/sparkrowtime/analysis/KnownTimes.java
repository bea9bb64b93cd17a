package sparkrowtime.analysis;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.plan.PackedRows;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Scala;

/**
 * Decides which times of an analyzed plan come from a watermark node: columns, and times inside their structs.
 * Spark relies on a mark in the metadata of a column or of a field, which can be copied: {@code alias("rowtime",
 * metadata=...)} and {@code mapInPandas(f, df.schema)} put it on other times. Called when a query is started.
 *
 * <p>Law: a time is known if a watermark node is on it, or if it is a plain copy, a window, or a window's time of
 * such a time. Of a node that stands for several children or expressions, each must have it known at the same
 * position. For all other expressions and operators the answer is no.
 */
final class KnownTimes {
  /** The place of the end of a window, in which the window's time is. */
  private static final List<Integer> END = List.of(1);

  private final Definitions definitions;

  KnownTimes(Definitions definitions) {
    this.definitions = definitions;
  }

  /** Whether {@code e}, an expression over the children of {@code node}, comes from a watermark node. */
  boolean isKnownBelow(Expression e, LogicalPlan node) {
    return isMadeOfKnown(e, Columns.WHOLE, node);
  }

  private boolean isKnownBelow(Attribute column, List<Integer> place, LogicalPlan node) {
    return Scala.list(node.children()).stream()
        .anyMatch(c -> c.outputSet().contains(column) && isKnown(column, place, c));
  }

  /** The same for a column of {@code plan} itself, or for a time inside it. */
  private boolean isKnown(Attribute column, List<Integer> place, LogicalPlan plan) {
    if (place.isEmpty() && isWatermarkOn(column, plan)) {
      return true;
    } else if (!place.isEmpty() && StatefulNodes.holdsBack(plan)) {
      return false; // it outputs a row later, by the time of a column; what the row has inside can be earlier
    } else if (list(plan) != null) {
      return isKnownIn(list(plan), column, place, plan);
    } else if (plan instanceof Expand expand) {
      int index = Definitions.place(column, plan);
      return Scala.list(expand.projections()).stream().map(p -> p.apply(index)).allMatch(e -> isGiven(e, place, plan));
    } else if (plan instanceof Union union) {
      return isKnownInUnion(union, Definitions.place(column, plan), place);
    } else if (definitions.body(plan) != null) {
      return isKnownAt(Definitions.place(column, plan), place, definitions.body(plan));
    } else if (plan instanceof UnionLoop) {
      return false; // its columns have the ids of the first step
    }
    Attribute packed = PackedRows.followed(column, plan);
    return packed != null ? isKnownBelow(packed, place, plan) : isKnownBelow(column, place, plan);
  }

  /** The expressions of a node that computes columns; null for other nodes. */
  private static List<NamedExpression> list(LogicalPlan plan) {
    if (plan instanceof Aggregate aggregate) {
      return Scala.list(aggregate.aggregateExpressions());
    }
    return plan instanceof Project project ? Scala.list(project.projectList()) : null;
  }

  private boolean isKnownAt(int index, List<Integer> place, LogicalPlan plan) {
    return isKnown(plan.output().apply(index), place, plan);
  }

  /** Known in each child, or in one whose bound also holds for the others (option punctuate). */
  private boolean isKnownInUnion(Union union, int index, List<Integer> place) {
    List<LogicalPlan> known =
        Scala.list(union.children()).stream().filter(c -> isKnownAt(index, place, c)).toList();
    return known.size() == union.children().size() || known.stream().anyMatch(c -> c.exists(KnownTimes::punctuates));
  }

  private static boolean punctuates(Object node) {
    return node instanceof StreamingRelationV2 r && r.extraOptions().getBoolean("punctuate", false);
  }

  private static boolean isWatermarkOn(Attribute column, LogicalPlan plan) {
    return plan instanceof EventTimeWatermark w && w.eventTime().exprId().equals(column.exprId())
        || plan instanceof UpdateEventTimeWatermarkColumn u && u.eventTime().exprId().equals(column.exprId());
  }

  private boolean isKnownIn(List<NamedExpression> list, Attribute column, List<Integer> place, LogicalPlan plan) {
    return list.stream()
        .filter(e -> e.exprId().equals(column.exprId()))
        .anyMatch(e -> isMadeOfKnown((Expression) e, place, plan));
  }

  private boolean isGiven(Expression e, List<Integer> place, LogicalPlan plan) {
    return e.foldable() || isMadeOfKnown(e, place, plan);
  }

  private boolean isMadeOfKnown(Expression made, List<Integer> place, LogicalPlan plan) {
    Expression e = ExprBounds.uncast(made);
    if (e instanceof Attribute a) {
      return isKnownBelow(a, place, plan) || place.equals(END) && isKnownBelow(a, Columns.WHOLE, plan);
    } else if (e instanceof Alias || e instanceof TaggingExpression) {
      return isMadeOfKnown(e.children().head(), place, plan);
    } else if (e instanceof GetStructField field) {
      return isMadeOfKnown(field.child(), ExprBounds.within(field.ordinal(), place), plan);
    } else if (isWindowOrItsTime(e)) {
      List<PreciseTimestampConversion> read = WindowBounds.times(e);
      // The first is the start of a window. The end is not earlier: that of a session is the time plus the gap.
      boolean counts = place.isEmpty() || place.equals(END);
      return counts && !read.isEmpty() && isMadeOfKnown(read.get(0).child(), Columns.WHOLE, plan);
    }
    return e instanceof CreateNamedStruct struct
        && !place.isEmpty()
        && isMadeOfKnown(struct.valExprs().apply(place.get(0)), place.subList(1, place.size()), plan);
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
}

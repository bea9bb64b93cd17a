package sparkrowtime.bounds;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.types.LongType;
import sparkrowtime.support.Scala;

/**
 * The window columns of a query whose windows all end at whole milliseconds. Operators compare with W in
 * milliseconds: an open window that ends a fraction of a millisecond after W has W itself as its
 * window_time.
 *
 * <p>Law: a window is whole if the duration, slide and start in Spark's arithmetic are all whole
 * milliseconds. A window whose arithmetic is not found is not whole, and neither is a session.
 */
public final class WholeWindows {
  private final Definitions definitions;
  private final Set<ExprId> whole = new HashSet<>();
  private final Set<ExprId> others = new HashSet<>();

  public WholeWindows(LogicalPlan plan) {
    definitions = new Definitions(plan);
    plan.foreach(Scala.each(this::add));
  }

  public boolean has(Attribute window) {
    return whole.contains(window.exprId()) && !others.contains(window.exprId());
  }

  private void add(LogicalPlan node) {
    for (Attribute a : Scala.list(node.output())) {
      if (WindowBounds.isFixedSize(a)) {
        (isWhole(a, node) ? whole : others).add(a.exprId());
      }
    }
  }

  private boolean isWhole(Attribute window, LogicalPlan plan) {
    if (definitions.body(plan) != null) {
      return isWholeAt(Definitions.place(window, plan), List.of(definitions.body(plan)));
    } else if (plan instanceof Union union) {
      return isWholeAt(Definitions.place(window, plan), Scala.list(union.children()));
    } else if (plan instanceof Expand expand) {
      int place = Definitions.place(window, plan);
      return Scala.list(expand.projections()).stream().allMatch(p -> isMadeWhole(p.apply(place), plan));
    } else if (plan instanceof Project project) {
      return isListedWhole(window, Scala.list(project.projectList()), plan);
    } else if (plan instanceof Aggregate aggregate) {
      return isListedWhole(window, Scala.list(aggregate.aggregateExpressions()), plan);
    }
    return isGivenWhole(window, plan);
  }

  private boolean isWholeAt(int place, List<LogicalPlan> parts) {
    return parts.stream().allMatch(part -> isWhole(part.output().apply(place), part));
  }

  private boolean isListedWhole(Attribute window, List<NamedExpression> list, LogicalPlan plan) {
    return list.stream()
        .filter(e -> e.exprId().equals(window.exprId()))
        .allMatch(e -> isMadeWhole((Expression) e, plan));
  }

  private boolean isMadeWhole(Expression made, LogicalPlan plan) {
    Expression e = ExprBounds.uncast(made);
    if (e instanceof Alias alias) {
      return isMadeWhole(alias.child(), plan);
    } else if (e instanceof Attribute a) {
      return isGivenWhole(a, plan);
    }
    return e instanceof CreateNamedStruct
        && Scala.list(e.collect(Scala.only(Literal.class))).stream().allMatch(WholeWindows::isWholeNumber);
  }

  private static boolean isWholeNumber(Literal literal) {
    return !(literal.dataType() instanceof LongType) || (Long) literal.value() % 1000 == 0;
  }

  private boolean isGivenWhole(Attribute window, LogicalPlan plan) {
    return Scala.list(plan.children()).stream()
        .filter(child -> child.outputSet().contains(window))
        .findFirst()
        .map(child -> isWhole(window, child))
        .orElse(false);
  }
}

package sparkrowtime.analysis;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.FullOuter$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.Monotonic;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Scala;

/**
 * Decides whether a time column of an analyzed plan can be NULL. An instance answers one question.
 * Spark's own flag is set for too many columns, for example for every date_trunc. Called when a query is
 * started.
 *
 * <p>Law: the answer no is certain. The answer yes may be wrong.
 */
final class NullableTimes {
  private final Definitions definitions;

  private String reason = "";
  private String instead = "group by a time that every row has, such as that of the join's other side";

  NullableTimes(Definitions definitions) {
    this.definitions = definitions;
  }

  /** Why the column can be NULL. */
  String reason() {
    return reason;
  }

  /** What to write, if the rows with NULL are to stay. */
  String instead() {
    return instead;
  }

  boolean canBeNull(Attribute column, LogicalPlan plan) {
    return canBeNull(column, plan, Set.of());
  }

  /**
   * @param above columns that are not NULL in the rows of {@code plan} that matter. They show that a row has a
   *     match: without one, all columns of its side are NULL.
   */
  private boolean canBeNull(Attribute column, LogicalPlan plan, Set<ExprId> above) {
    Set<ExprId> notNull = new HashSet<>(above);
    plan.constraints().foreach(Scala.each(e -> learn(e, notNull)));
    if (notNull.contains(column.exprId())) {
      return false;
    } else if (plan instanceof Project project) {
      return listed(column, Scala.list(project.projectList()), plan, notNull);
    } else if (plan instanceof Aggregate aggregate) {
      return listed(column, Scala.list(aggregate.aggregateExpressions()), plan, notNull);
    } else if (plan instanceof Join join && isMadeNullBy(join, column, notNull)) {
      return because("it is of the side of a " + join.joinType().sql() + " JOIN that may have no match");
    } else if (plan instanceof Expand expand) {
      int place = Definitions.place(column, plan);
      return Scala.list(expand.projections()).stream().anyMatch(p -> isNullable(p.apply(place), plan, notNull));
    } else if (plan instanceof Union union) {
      return Scala.list(union.children()).stream().anyMatch(part -> canBeNullAt(column, plan, part, notNull));
    } else if (definitions.body(plan) != null) {
      return canBeNullAt(column, plan, definitions.body(plan), notNull);
    }
    return fromInput(column, plan, notNull);
  }

  /** The same for a part of {@code plan}, with the same columns by place. Parts may share ids: a union with itself. */
  private boolean canBeNullAt(Attribute column, LogicalPlan plan, LogicalPlan part, Set<ExprId> notNull) {
    Set<ExprId> ofPart =
        IntStream.range(0, part.output().size())
            .filter(i -> notNull.contains(plan.output().apply(i).exprId()))
            .mapToObj(i -> part.output().apply(i).exprId())
            .collect(Collectors.toSet());
    return canBeNull(part.output().apply(Definitions.place(column, plan)), part, ofPart);
  }

  private static void learn(Expression constraint, Set<ExprId> notNull) {
    if (constraint instanceof IsNotNull known && known.child() instanceof Attribute column) {
      notNull.add(column.exprId());
    }
  }

  private boolean fromInput(Attribute column, LogicalPlan plan, Set<ExprId> notNull) {
    return Scala.list(plan.children()).stream()
        .filter(c -> c.outputSet().contains(column))
        .findFirst()
        .map(c -> canBeNull(column, c, notNull))
        .orElseGet(() -> isMadeNullable(column, plan) && because(plan));
  }

  private static boolean isMadeNullable(Attribute column, LogicalPlan plan) {
    return plan.output().apply(Definitions.place(column, plan)).nullable();
  }

  private boolean because(LogicalPlan plan) {
    if (plan instanceof MapInPandas || plan instanceof MapInArrow) {
      instead = "say TIMESTAMP NOT NULL in the schema of the function, which then fails if it returns NULL there";
    }
    return because("the column is nullable in " + plan.nodeName());
  }

  private boolean because(String why) {
    reason = why;
    return true;
  }

  private static boolean isMadeNullBy(Join join, Attribute column, Set<ExprId> notNull) {
    boolean left = join.left().outputSet().contains(column);
    boolean matched = Scala.list((left ? join.left() : join.right()).output()).stream()
        .anyMatch(a -> notNull.contains(a.exprId()));
    boolean outer = join.joinType().equals(FullOuter$.MODULE$)
        || join.joinType().equals(left ? RightOuter$.MODULE$ : LeftOuter$.MODULE$);
    return outer && !matched;
  }

  private boolean listed(
      Attribute column, List<NamedExpression> list, LogicalPlan plan, Set<ExprId> notNull) {
    return list.stream()
        .filter(e -> e.exprId().equals(column.exprId()))
        .anyMatch(e -> isNullable((Expression) e, plan, notNull));
  }

  private boolean isNullable(Expression e, LogicalPlan plan, Set<ExprId> notNull) {
    if (e instanceof Attribute a) {
      return fromInput(a, plan, notNull);
    } else if (e instanceof CreateNamedStruct || e instanceof Literal literal && literal.value() != null) {
      return false;
    } else if (e instanceof RuntimeReplaceable replaced) {
      return isNullable(replaced.replacement(), plan, notNull);
    } else if (e instanceof SQLScalarFunction function) {
      return isNullable(function.child(), plan, notNull);
    }
    List<Expression> parts = parts(e);
    if (e instanceof Coalesce || e instanceof Greatest || e instanceof Least) {
      return parts.stream().allMatch(p -> isNullable(p, plan, notNull));
    }
    return parts.stream().anyMatch(p -> isNullable(p, plan, notNull))
        || givesNull(e) && because(e.sql() + " can be NULL");
  }

  /** Whether a function can return NULL for arguments that are not NULL. Those that keep order never do. */
  private static boolean givesNull(Expression e) {
    return e instanceof GetStructField field
        ? field.childSchema().apply(field.ordinal()).nullable() && !isOfWindow(field)
        : e.nullable() && !(e instanceof ConditionalExpression) && Monotonic.argument(e) < 0;
  }

  /** Spark marks the start and the end of a window as nullable, but drops the rows whose time is NULL. */
  private static boolean isOfWindow(GetStructField field) {
    return field.child() instanceof Attribute struct && WindowBounds.isWindow(struct);
  }

  /** For a choice, its possible values; otherwise the arguments. */
  private static List<Expression> parts(Expression e) {
    if (e instanceof If choice) {
      return List.of(choice.trueValue(), choice.falseValue());
    } else if (e instanceof CaseWhen choice) {
      return ExprBounds.values(choice);
    }
    return Scala.list(e.children());
  }
}

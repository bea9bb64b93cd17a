package sparkrowtime.query;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.expressions.With;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import sparkrowtime.analysis.JoinConditions;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.ExprBounds;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * How the columns of a query are computed from those that its streams have, as texts for the files of a
 * checkpoint.
 *
 * <p>Law: two runs of a query give the same texts. The names that the user gave do not count.
 */
final class Derivations {
  /** The literals of every window: the names of its fields, and a start at the epoch. */
  private static final Set<String> IN_ALL_WINDOWS = Set.of("'start'", "'end'", "0L", "0");

  /** What each column is computed from. A column of a UNION, whose id is that of its first part, has several. */
  private final Map<ExprId, List<Expression>> definitions = new HashMap<>();

  private final Definitions withNames;
  private final Set<LogicalPlan> bodies = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Function<Attribute, String> asRead;
  private final boolean ofFields;
  private final boolean asBefore;

  /**
   * @param withNames the names of WITH in the whole query
   * @param part the query, or the part of it in which columns are computed. Above it a UNION can give a column of its first
   *     part other meanings
   * @param asRead the text of a column that is not computed in the query; null leaves out what is computed from it
   * @param ofFields whether it matters which field of a struct is taken
   * @param asBefore the texts of the first form of the files, to compare a file of that form with
   */
  Derivations(
      Definitions withNames, LogicalPlan part, Function<Attribute, String> asRead, boolean ofFields, boolean asBefore) {
    this.asRead = asRead;
    this.ofFields = ofFields;
    this.asBefore = asBefore;
    this.withNames = withNames;
    part.foreach(Scala.each(this::define));
  }

  private void define(LogicalPlan node) {
    Scala.list(node.expressions()).forEach(e -> e.foreach(Scala.each(this::define)));
    LogicalPlan body = withNames.body(node);
    if (body != null) {
      define(node, body);
      if (bodies.add(body)) {
        body.foreach(Scala.each(this::define));
      }
    }
    if (node instanceof Expand expand) {
      for (int i = 0; i < expand.output().size(); i++) {
        define(expand.output().apply(i), expand.projections().head().apply(i));
      }
    } else if (node instanceof Union union) {
      Scala.list(union.children()).forEach(child -> define(union, child));
    }
  }

  private void define(LogicalPlan node, LogicalPlan part) {
    for (int i = 0; i < node.output().size(); i++) {
      define(node.output().apply(i), part.output().apply(i));
    }
  }

  /** A column that is only passed on has the id that it had below. */
  private void define(Attribute column, Expression made) {
    if (!(made instanceof Attribute same && same.exprId().equals(column.exprId()))) {
      add(column.exprId(), made);
    }
  }

  private void define(Object e) {
    if (e instanceof Alias alias) {
      add(alias.exprId(), alias.child());
    }
  }

  private void add(ExprId id, Expression made) {
    List<Expression> all = definitions.computeIfAbsent(id, any -> new ArrayList<>());
    if (all.stream().noneMatch(made::semanticEquals)) {
      all.add(made);
    }
  }

  /** How a time, a column or one inside it, is computed. A column of a UNION has several texts. */
  List<String> texts(Attribute column, List<Integer> place) {
    return texts(column, place, Set.of());
  }

  /**
   * An expression as SQL. Its columns are replaced by what they are computed from.
   *
   * @param side what is written before a column
   */
  String text(Expression e, Function<Attribute, String> side) {
    return written(e, column -> side.apply(column) + text(column, Set.of()));
  }

  /** The same, where columns that are computed above the join have the sides in what they are computed from. */
  String textBelow(Expression e, Function<Attribute, String> side) {
    return textBelow(e, side, Set.of());
  }

  private String textBelow(Expression e, Function<Attribute, String> side, Set<ExprId> above) {
    return written(e, column -> textBelow(column, side, above));
  }

  private String textBelow(Attribute column, Function<Attribute, String> side, Set<ExprId> above) {
    String of = side.apply(column);
    List<Expression> made = above.contains(column.exprId()) ? null : definitions.get(column.exprId());
    if (!of.isEmpty() || made == null) {
      return of + text(column, Set.of());
    }
    Set<ExprId> path = new HashSet<>(above);
    path.add(column.exprId());
    return made.stream().map(e -> textBelow(e, side, path)).distinct().sorted().collect(Collectors.joining(" or "));
  }

  /** The marked times of which an expression is computed, but not by an aggregation: that is no condition of a join. */
  Set<ExprId> times(Expression e) {
    Set<ExprId> times = new HashSet<>();
    addTimes(e, new HashSet<>(), times);
    return times;
  }

  private void addTimes(Expression e, Set<ExprId> seen, Set<ExprId> times) {
    for (Attribute column : Scala.list(e.references().toSeq())) {
      if (Rowtime.isWatermarked(column)) {
        times.add(column.exprId());
      } else if (seen.add(column.exprId())) {
        definitions.getOrDefault(column.exprId(), List.of()).stream()
            .filter(made -> !made.exists(Scala.function(AggregateExpression.class::isInstance)))
            .forEach(made -> addTimes(made, seen, times));
      }
    }
  }

  private List<String> texts(Attribute column, List<Integer> place, Set<ExprId> above) {
    List<Expression> made = above.contains(column.exprId()) ? null : definitions.get(column.exprId());
    if (made == null) {
      String read = asRead.apply(column);
      return read == null ? List.of() : List.of(read + shown(place));
    }
    Set<ExprId> path = new HashSet<>(above);
    path.add(column.exprId());
    return made.stream().flatMap(e -> texts(e, place, path).stream()).distinct().sorted().toList();
  }

  private List<String> texts(Expression made, List<Integer> place, Set<ExprId> above) {
    Expression e = ofFields ? ExprBounds.uncast(made) : made;
    if (e instanceof Attribute column) {
      return texts(column, place, above);
    } else if (e instanceof Alias) {
      return texts(e.children().head(), place, above);
    } else if (e instanceof GetStructField field) {
      return texts(field.child(), ofFields ? ExprBounds.within(field.ordinal(), place) : place, above);
    }
    List<PreciseTimestampConversion> read = WindowBounds.times(e);
    if (!read.isEmpty()) {
      List<String> times = texts(read.get(0).child(), Columns.WHOLE, above);
      String sizes = asBefore ? literals(e) : WindowSizes.text(e, part -> written(part, above));
      return times.stream().map(time -> sizes + of(time) + shown(place)).toList();
    }
    return e instanceof CreateNamedStruct struct && !place.isEmpty()
        ? texts(struct.valExprs().apply(place.get(0)), place.subList(1, place.size()), above)
        : isLeftOut(e, above) ? List.of() : List.of(written(e, above) + shown(place));
  }

  private boolean isLeftOut(Expression e, Set<ExprId> above) {
    List<Attribute> columns = Scala.list(e.references().toSeq());
    return !columns.isEmpty() && columns.stream().allMatch(column -> texts(column, Columns.WHOLE, above).isEmpty());
  }

  private static String shown(List<Integer> place) {
    return place.stream().map(field -> ", field " + field).collect(Collectors.joining());
  }

  /** The literals in the arithmetic of a window, as the first form of the files has them: in any order, each once. */
  private static String literals(Expression window) {
    return Scala.list(window.collect(Scala.only(Literal.class))).stream()
        .map(Literal::sql)
        .filter(sql -> !IN_ALL_WINDOWS.contains(sql))
        .distinct()
        .sorted()
        .collect(Collectors.joining(", "));
  }

  private static String of(String time) {
    return time.equals(CheckpointedTimes.AS_READ) ? "" : " of " + time;
  }

  private String written(Expression e, Set<ExprId> above) {
    return written(e, column -> text(column, above));
  }

  private String written(Expression e, Function<Attribute, String> columns) {
    Expression run = asBefore ? e : ExprBounds.asRun(e);
    return run.transformUp(Scala.rewriting(part -> plain(part, columns))).sql().replace("`", "");
  }

  private Expression plain(Expression e, Function<Attribute, String> columns) {
    boolean sameType = e instanceof Cast cast && cast.child().dataType().equals(cast.dataType());
    if (sameType || e instanceof RuntimeReplaceable || e instanceof SQLScalarFunction) {
      return e.children().head();  // of the others, SQL would show the columns as they were written, or a name only
    }
    if ((ofFields || !asBefore) && e instanceof With with) {
      return JoinConditions.inlined(with);
    }
    return e instanceof Attribute column
        ? column.withName(columns.apply(column)).withQualifier(Scala.seq(List.of()))
        : e;
  }

  private String text(Attribute column, Set<ExprId> above) {
    return String.join(" or ", texts(column, Columns.WHOLE, above));
  }
}

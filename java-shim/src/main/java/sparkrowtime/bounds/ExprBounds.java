package sparkrowtime.bounds;

import java.util.List;
import java.util.function.BinaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampType;
import sparkrowtime.support.Scala;

/**
 * The bound of an expression over columns with bounds. Called in the query's thread when a bound has
 * moved, and at analysis to decide whether a derived rowtime keeps its watermark.
 *
 * <p>Law: a function g maps the floor f to the least g(t) of all t at or after f, in microseconds. If g
 * is non-decreasing this is g(f), so strictness is preserved exactly if g is injective. {@link
 * Monotonic} is the closed list of functions. {@link LeastLater} handles those that are monotonic only
 * between the transitions of a zone. Any other function has no bound (null).
 */
public final class ExprBounds {
  private final Columns columns;

  public ExprBounds(Columns columns) {
    this.columns = columns;
  }

  public Bound of(Expression e) {
    Bound known = known(e);
    return known != null ? known : onlyOrdinary(e) ? Bound.ORDINARY : null;
  }

  /** The bound of a time inside the value of an expression: a column, a struct made by the expression, or a window. */
  Bound of(Expression e, List<Integer> place) {
    if (place.isEmpty()) {
      return of(e);
    }
    Expression value = uncast(e);
    if (value instanceof Attribute a) {
      return columns.get(a.exprId(), place);
    } else if (value instanceof Alias alias) {
      return of(alias.child(), place);
    } else if (value instanceof GetStructField field) {
      return of(field.child(), within(field.ordinal(), place));
    } else if (value instanceof CreateNamedStruct made) {
      Bound direct = of(made.valExprs().apply(place.get(0)), place.subList(1, place.size()));
      return direct != null || place.size() > 1 ? direct : WindowBounds.of(made, place.get(0), this);
    }
    List<Expression> choices = choices(value);
    return choices == null ? null : weakest(choices, place);
  }

  /** Whether an expression has a bound where all the columns in it have one, and so have the times of windows in them. */
  static boolean keeps(Expression e) {
    Columns known = new Columns();
    for (Attribute a : Scala.list(e.references().toSeq())) {
      List.of(Columns.WHOLE, Columns.START, Columns.END).forEach(place -> known.put(a.exprId(), place, Bound.of(0)));
    }
    return new ExprBounds(known).of(e) != null;
  }

  /** The place of something in a struct's field, given its place in the field. */
  public static List<Integer> within(int field, List<Integer> place) {
    return Stream.concat(Stream.of(field), place.stream()).toList();
  }

  private Bound known(Expression e) {
    if (e instanceof Attribute a) {
      return columns.get(a);
    } else if (e instanceof Literal literal) {
      return constant(literal);
    } else if (e instanceof GetStructField field) {
      return of(field.child(), List.of(field.ordinal()));
    } else if (e instanceof RuntimeReplaceable) {
      return of(asRun(e));
    } else if (e instanceof SQLScalarFunction function) {
      return of(function.child());
    } else if (e instanceof Greatest) {
      return strongest(Scala.list(e.children()));
    } else if (e instanceof Least) {
      return weakest(Scala.list(e.children()), Columns.WHOLE);
    } else if (choices(e) != null) {
      return weakest(choices(e), Columns.WHOLE);
    }
    int moving = Monotonic.argument(e);
    return moving < 0 ? null : moved(e, moving);
  }

  /**
   * The expression as it will run. Spark's optimizer replaces functions such as to_date by others, which need not be among
   * their children.
   */
  public static Expression asRun(Expression e) {
    return e.transformDown(Scala.rewriting(ExprBounds::replacement));
  }

  private static Expression replacement(Expression e) {
    return e instanceof RuntimeReplaceable replaced ? replacement(replaced.replacement()) : e;
  }

  /** The expression without casts to the type that it has. A view defined in SQL has one around each column. */
  public static Expression uncast(Expression e) {
    return e instanceof Cast cast && cast.child().dataType().sameType(cast.dataType()) ? uncast(cast.child()) : e;
  }

  private Bound moved(Expression e, int argument) {
    Bound bound = of(e.children().apply(argument));
    if (bound == null || !bound.isKnown()) {
      return bound;
    }
    Long least = least(e, argument, bound.floor());
    return least == null ? null : bound.withFloor(least);
  }

  /** The least value of {@code e} for any argument at or after {@code floor}; null if there is none. */
  private static Long least(Expression e, int argument, long floor) {
    Long first = value(e, argument, floor);
    return first == null || !LeastLater.rounds(e)
        ? first
        : (Long) LeastLater.from(e, micros -> value(e, argument, micros), floor);
  }

  private static Long value(Expression e, int argument, long at) {
    Object value = e.withNewChildren(replaced(e, argument, at)).eval(InternalRow.empty());
    return value == null ? null : (Long) ((Number) value).longValue();
  }

  private static scala.collection.immutable.IndexedSeq<Expression> replaced(
      Expression e, int argument, long floor) {
    List<Expression> children = Scala.list(e.children());
    return Scala.seq(
            IntStream.range(0, children.size())
                .mapToObj(i -> i == argument ? literal(floor, children.get(i).dataType()) : children.get(i))
                .toList())
        .toIndexedSeq();
  }

  static Expression literal(long value, DataType type) {
    return new Literal(type instanceof DateType ? (Object) (int) value : (Object) value, type);
  }

  /** The expressions one of which is the value of a choice; null if it is no choice. */
  private static List<Expression> choices(Expression e) {
    if (e instanceof Coalesce) {
      return upToNotNull(Scala.list(e.children()));
    } else if (e instanceof If choice) {
      return List.of(choice.trueValue(), choice.falseValue());
    }
    return e instanceof CaseWhen choice ? values(choice) : null;
  }

  /** The possible values of CASE WHEN, among them NULL if it has no ELSE. */
  public static List<Expression> values(CaseWhen choice) {
    Expression otherwise = Scala.orNull(choice.elseValue());
    return Stream.concat(
            Scala.list(choice.branches()).stream().map(branch -> branch._2()),
            Stream.of(otherwise == null ? Literal.create(null, choice.dataType()) : otherwise))
        .toList();
  }

  /** A time beyond the legal ones has the bound of the last of them: it is not the end of a stream. */
  private static Bound constant(Literal literal) {
    boolean time = literal.dataType() instanceof TimestampType && literal.value() != null;
    return time ? Bound.of(Math.min((Long) literal.value(), EndOfTime.PUBLISHED)) : null;
  }

  /** The arguments of coalesce that it can return: those up to the first that is never NULL. */
  private static List<Expression> upToNotNull(List<Expression> arguments) {
    int last = IntStream.range(0, arguments.size()).filter(i -> !arguments.get(i).nullable()).findFirst().orElse(-1);
    return last < 0 ? arguments : arguments.subList(0, last + 1);
  }

  private Bound weakest(List<Expression> arguments, List<Integer> place) {
    return fold(arguments.stream().map(e -> of(e, place)).toList(), Bound::weakest, true);
  }

  /** greatest(rowtime, x) is never below rowtime, whatever x is. */
  private Bound strongest(List<Expression> arguments) {
    List<Expression> always = arguments.stream().filter(e -> !e.nullable()).toList();
    return always.isEmpty()
        ? weakest(arguments, Columns.WHOLE)
        : fold(always.stream().map(this::of).toList(), (a, b) -> a.floor() >= b.floor() ? a : b, false);
  }

  private static Bound fold(List<Bound> bounds, BinaryOperator<Bound> combine, boolean all) {
    boolean missing = all && bounds.contains(null);
    return missing
        ? null
        : bounds.stream()
            .filter(b -> b != null && (all || !b.isOrdinary()))
            .reduce(combine)
            .orElse(null);
  }

  private boolean onlyOrdinary(Expression e) {
    List<Attribute> used = Scala.list(e.references().toSeq());
    return !used.isEmpty()
        && used.stream().map(columns::get).allMatch(b -> b != null && b.isOrdinary());
  }
}

package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BinaryOperator;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;

/**
 * The bounds of the columns of one node of a plan, and of the times inside their structs. A place without an
 * entry has no bound.
 *
 * <p>Law: a time inside a value is found by its position, as Spark's UNION and casts find it. Its name can be
 * another one in each part.
 */
public final class Columns {
  /** The place of the column itself. The place of a field is its index in each struct on the way to it. */
  public static final List<Integer> WHOLE = List.of();

  /** The place of a window's start. */
  static final List<Integer> START = List.of(0);

  /** The place of a window's end. */
  static final List<Integer> END = List.of(1);

  private final Map<ExprId, Map<List<Integer>, Bound>> bounds = new HashMap<>();

  public Bound get(ExprId id, List<Integer> place) {
    Map<List<Integer>, Bound> column = bounds.getOrDefault(id, Map.of());
    Bound whole = column.get(WHOLE);
    return whole != null && whole.isOrdinary() ? whole : column.get(place);
  }

  public Bound get(Attribute column) {
    return get(column.exprId(), WHOLE);
  }

  /** Whether the column, or a time inside it, has a bound. */
  boolean has(Attribute column) {
    return bounds.containsKey(column.exprId());
  }

  void put(ExprId id, List<Integer> place, Bound bound) {
    if (bound != null) {
      bounds.computeIfAbsent(id, any -> new HashMap<>()).put(place, bound);
    }
  }

  void putAll(Columns other) {
    other.bounds.forEach((id, column) -> bounds.computeIfAbsent(id, any -> new HashMap<>()).putAll(column));
  }

  /** Whether one of these columns, which is never NULL, is at the end of time: then no row follows. */
  boolean haveEnded(List<Attribute> columns) {
    return columns.stream()
        .filter(a -> !a.nullable())
        .flatMap(a -> times(a).map(place -> get(a.exprId(), place)))
        .anyMatch(b -> b != null && b.isPromise() && EndOfTime.isEnd(b.floor()));
  }

  /** The times of a column that are not NULL unless it is. Any other field may be. */
  private static Stream<List<Integer>> times(Attribute a) {
    return WindowBounds.isWindow(a) ? Stream.of(START, END) : Stream.of(WHOLE);
  }

  /**
   * Moves each bound to the end of time, also that of a constant, since no row follows. The start of a window stays so far
   * before its end: above, rows that are kept have the bound of their start by that size.
   */
  void end() {
    bounds.values().forEach(column -> {
      long size = size(column.get(START), column.get(END));
      column.replaceAll(
          (place, b) -> b.isKnown() ? b.withFloor(EndOfTime.WITHIN - (place.equals(START) ? Math.max(size, 0) : 0)) : b);
    });
  }

  /**
   * Sets every place of {@code to} to both bounds combined, or to none if one of them is missing.
   * Windows of different sizes have no bound of their start, since it is computed from the end and the
   * size.
   */
  void merge(Attribute to, Columns one, Attribute a, Columns two, Attribute b, BinaryOperator<Bound> combine) {
    boolean noStart = (WindowBounds.isFixedSize(a) || WindowBounds.isFixedSize(b)) && size(one, a) != size(two, b);
    Set<List<Integer>> places = new HashSet<>(one.places(a));
    places.addAll(two.places(b));
    for (List<Integer> place : places) {
      Bound left = one.get(a.exprId(), place);
      Bound right = two.get(b.exprId(), place);
      boolean missing = left == null || right == null || noStart && place.equals(START);
      put(to.exprId(), place, missing ? null : combine.apply(left, right));
    }
  }

  private Set<List<Integer>> places(Attribute a) {
    return bounds.getOrDefault(a.exprId(), Map.of()).keySet();
  }

  private static long size(Columns columns, Attribute a) {
    return size(columns.get(a.exprId(), START), columns.get(a.exprId(), END));
  }

  private static long size(Bound start, Bound end) {
    return start == null || end == null || !end.isKnown() ? 0 : end.floor() - start.floor();
  }
}

package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;

/** The bounds of the columns of one node of a plan. A column without an entry has no bound. */
public final class Columns {
  /** The fields that can have a bound: the column itself, and those of a window. */
  static final String[] FIELDS = {"", "start", "end"};

  private record Key(ExprId id, String field) {}

  private final Map<Key, Bound> bounds = new HashMap<>();

  public Bound get(ExprId id, String field) {
    Bound whole = bounds.get(new Key(id, ""));
    return whole != null && whole.isOrdinary() ? whole : bounds.get(new Key(id, field));
  }

  public Bound get(Attribute column) {
    return get(column.exprId(), "");
  }

  void put(ExprId id, String field, Bound bound) {
    if (bound != null) {
      bounds.put(new Key(id, field), bound);
    }
  }

  void putAll(Columns other) {
    bounds.putAll(other.bounds);
  }

  /** Whether one of these columns, which is never NULL, is at the end of time: then no row follows. */
  boolean haveEnded(List<Attribute> columns) {
    return columns.stream()
        .filter(a -> !a.nullable())
        .flatMap(a -> Stream.of(FIELDS).map(field -> get(a.exprId(), field)))
        .anyMatch(b -> b != null && b.isPromise() && EndOfTime.isEnd(b.floor()));
  }

  /** Moves each bound to the end of time, also that of a constant, since no row follows. */
  void end() {
    bounds.replaceAll((key, b) -> b.isKnown() ? b.withFloor(EndOfTime.WITHIN) : b);
  }

  /**
   * Sets every field of {@code to} to both bounds combined, or to none if one of them is missing.
   * Windows of different sizes have no bound of their start, since it is computed from the end and the
   * size.
   */
  void merge(Attribute to, Columns one, Attribute a, Columns two, Attribute b, BinaryOperator<Bound> combine) {
    boolean sameSize = size(one, a) == size(two, b);
    for (String field : FIELDS) {
      if (field.equals("start") && !sameSize) {
        continue;
      }
      Bound left = one.get(a.exprId(), field);
      Bound right = two.get(b.exprId(), field);
      put(to.exprId(), field, left == null || right == null ? null : combine.apply(left, right));
    }
  }

  private static long size(Columns columns, Attribute a) {
    Bound start = columns.get(a.exprId(), "start");
    Bound end = columns.get(a.exprId(), "end");
    return start == null || end == null || !end.isKnown() ? 0 : end.floor() - start.floor();
  }
}

package sparkrowtime.bounds;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampType;
import sparkrowtime.support.Scala;

/**
 * The bounds of a window's start and end before any aggregation. Spark has rewritten {@code
 * window(rowtime, ...)} to arithmetic that is non-decreasing in its time column as a whole, though not
 * in each step. The conversions in it occur nowhere else, since users have no function for them.
 *
 * <p>Law: a later row, at or after the floor f, falls into windows that start and end no earlier than
 * those of f.
 */
public final class WindowBounds {
  private static final String MARKER = "spark.timeWindow";
  private static final String SESSION_MARKER = "spark.sessionWindow";

  private WindowBounds() {}

  /** True for windows of a fixed size, false for sessions. */
  static boolean isFixedSize(NamedExpression e) {
    return e.metadata().contains(MARKER);
  }

  /** True for sessions, before or after an aggregation. */
  public static boolean isSession(NamedExpression e) {
    return e.metadata().contains(SESSION_MARKER);
  }

  /** True for windows and sessions that Spark has computed from a time, before or after an aggregation. */
  public static boolean isWindow(NamedExpression e) {
    return isFixedSize(e) || isSession(e);
  }

  static Bound of(CreateNamedStruct window, int field, ExprBounds bounds) {
    List<PreciseTimestampConversion> times = times(window);
    if (times.isEmpty() || times.stream().anyMatch(t -> !t.child().semanticEquals(times.get(0).child()))) {
      return null;
    }
    Bound time = bounds.of(times.get(0).child());
    if (time == null || !time.isKnown()) {
      return time;
    }
    Expression moved = at(window.valExprs().apply(field), time.floor());
    return Monotonic.isConstant(moved) ? time.withFloor((Long) moved.eval(InternalRow.empty())) : null;
  }

  /** The conversions from a timestamp to its microseconds: they are where the time column is read. */
  public static List<PreciseTimestampConversion> times(Expression window) {
    return Scala.list(window.collect(Scala.only(PreciseTimestampConversion.class))).stream()
        .filter(WindowBounds::isReading)
        .toList();
  }

  private static Expression at(Expression window, long micros) {
    return window.transformDown(
        Scala.rewriting(e -> isReading(e) ? ExprBounds.literal(micros, e.dataType()) : e));
  }

  private static boolean isReading(TreeNode<?> e) {
    return e instanceof PreciseTimestampConversion c
        && c.fromType() instanceof TimestampType
        && c.toType() instanceof LongType;
  }
}

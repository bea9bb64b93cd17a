package sparkrowtime.query;

import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.Remainder;
import org.apache.spark.sql.catalyst.expressions.Subtract;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Scala;

/**
 * The sizes of a window as a text, read off the arithmetic that Spark has made of it: of {@code window} its length, then
 * its slide, then its start, of which those that Spark sets by itself are left out; of {@code session_window} its gap.
 *
 * <p>Law: windows with the same text are the same for each row.
 */
final class WindowSizes {
  private WindowSizes() {}

  /** @param written the text of an expression in the gap of a session */
  static String text(Expression window, Function<Expression, String> written) {
    Expression end = window instanceof CreateNamedStruct made ? made.valExprs().apply(1) : null;
    Remainder grid = end == null ? null : first(end, Remainder.class);
    Add last = end == null ? null : first(end, Add.class);
    if (grid != null && grid.left() instanceof Subtract shifted && last != null) {
      return fixed(last.right().sql(), grid.right().sql(), shifted.right().sql());
    }
    Expression gap = end == null ? null : gap(end);
    return gap != null ? written.apply(gap) : literals(window);
  }

  private static String fixed(String length, String slide, String start) {
    if (start.equals("0L")) {
      return slide.equals(length) ? length : length + ", " + slide;
    }
    return String.join(", ", length, slide, start);
  }

  /** What is added to the time of a session; a cast of a text to an interval is shown as the text. */
  private static Expression gap(Expression end) {
    List<PreciseTimestampConversion> read = WindowBounds.times(end);
    Expression sum = read.isEmpty() ? null : uncast(read.get(0).child());
    return sum == null || sum.children().size() != 2 ? null : uncast(sum.children().apply(1));
  }

  private static Expression uncast(Expression e) {
    return e instanceof Cast cast ? uncast(cast.child()) : e;
  }

  /** Of what is computed of a window, such as {@code window_time}. */
  private static String literals(Expression e) {
    return Scala.list(e.collect(Scala.only(Literal.class))).stream().map(Literal::sql).collect(Collectors.joining(", "));
  }

  private static <E extends Expression> E first(Expression e, Class<E> kind) {
    return Scala.list(e.collect(Scala.only(kind))).stream().findFirst().orElse(null);
  }
}

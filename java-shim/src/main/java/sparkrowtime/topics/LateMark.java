package sparkrowtime.topics;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.support.ShimMismatch;

/**
 * The object of a function that takes late rows. In the plan of a query it is a mark, which names one use of bounds. In
 * the plan of a batch {@link sparkrowtime.query.LateFilter} puts one in its place that takes the late rows, behind a
 * comparison with the bound. So the function is called for late rows only. Its copies run in tasks.
 */
public abstract class LateMark implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The name of the function, for Spark's call. Its first argument is the time of the row; it returns false. */
  public static final String METHOD = "late";

  private final String id;
  private final LateRows rows;

  /**
   * @param rows null in the plan of a query
   */
  protected LateMark(String id, LateRows rows) {
    this.id = id;
    this.rows = rows;
  }

  /** The use of the bounds. */
  public final String id() {
    return id;
  }

  /** The mark of an expression that calls the function; null for other expressions. */
  public static LateMark of(Object e) {
    return e instanceof Invoke call && call.targetObject() instanceof Literal literal && literal.value() instanceof LateMark m
        ? m
        : null;
  }

  /** The time of such an expression. */
  public static Expression time(Expression call) {
    return ((Invoke) call).arguments().head();
  }

  /** The columns of a late row that is kept. */
  public abstract StructType kept();

  public abstract LateMark keepingIn(LateRows rows);

  protected final LateRows rows() {
    if (rows == null) {
      throw new ShimMismatch("late rows to be compared with the bound before the batch runs", null);
    }
    return rows;
  }
}

package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MonotonicallyIncreasingID;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.InTable;
import sparkrowtime.topics.LateMark;

/**
 * The physical rule that gives the filter of late rows the floor of its batch: that at the start of the batch, which
 * was in force at each of its rows.
 *
 * <p>Law: the floor is a function of the batch's offsets, so a batch that is run again takes the same rows for late.
 */
public final class LateFilter extends PlanRule {
  @Override
  SparkPlan rewrite(SparkPlan node) {
    boolean concerns = node instanceof FilterExec && node.expressions().exists(Scala.function(LateFilter::isMarked));
    BoundedQuery query = concerns ? BoundedQuery.ofThisThread() : null;
    return query == null
        ? node
        : node.transformExpressionsUp(Scala.rewriting(e -> LateMark.of(e) == null ? e : compared((Invoke) e, query)));
  }

  private static boolean isMarked(Expression e) {
    return e.exists(Scala.function(part -> LateMark.of(part) != null));
  }

  private static Expression compared(Invoke call, BoundedQuery query) {
    LateMark mark = LateMark.of(call);
    Expression time = LateMark.time(call);
    LateBatch.Late late = query.late().lateIn(mark, time);
    Literal keeping = new Literal(mark.keepingIn(late.rows()), new ObjectType(mark.getClass()));
    return new Or(
        new GreaterThanOrEqual(time, new Literal(late.floor(), DataTypes.TimestampType)),
        new Invoke(
            keeping, call.functionName(), call.dataType(), Scala.seq(arguments(mark, call)), call.methodInputTypes(),
            call.propagateNull(), call.returnNullable(), call.isDeterministic()));
  }

  /** Those of the call; a row of a table has no place of its own, as messages have, so it gets one. */
  private static List<Expression> arguments(LateMark mark, Invoke call) {
    List<Expression> arguments = new ArrayList<>(Scala.list(call.arguments()));
    if (mark instanceof InTable) {
      arguments.add(new MonotonicallyIncreasingID());
    }
    return arguments;
  }
}

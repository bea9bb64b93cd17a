package sparkrowtime.analysis;

import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses CUBE, ROLLUP and GROUPING SETS in append mode if one of their sets lacks the time column. Such a
 * set is never complete, and Spark would keep its totals forever without a warning. The time may be an expression,
 * such as the hour of rowtime: then no column is in each set.
 */
final class RefuseLostTotals {
  private RefuseLostTotals() {}

  static void check(LogicalPlan node) {
    if (node instanceof Aggregate aggregate
        && aggregate.child() instanceof Expand sets
        && sets.isStreaming()
        && (losesTime(sets) || losesAll(aggregate, sets))) {
      throw new IllegalArgumentException(
          "A grouping set without the event time column is never complete, so in append mode its results"
              + " would never be emitted: " + aggregate.simpleString(20) + ". Write GROUPING SETS that all have"
              + " the window or rowtime in them; CUBE and ROLLUP always create a set without it.");
    }
  }

  private static boolean losesTime(Expand sets) {
    List<Attribute> output = Scala.list(sets.output());
    return IntStream.range(0, output.size())
        .filter(i -> Rowtime.isWatermarked(output.get(i)))
        .anyMatch(i -> isLost(i, sets));
  }

  /** Whether no column is in each set. So none is the time that each needs, whatever it is made of. */
  private static boolean losesAll(Aggregate aggregate, Expand sets) {
    List<Attribute> output = Scala.list(sets.output());
    List<Integer> keys =
        IntStream.range(0, output.size())
            .filter(i -> isKey(output.get(i), aggregate) && !numbersTheSet(i, sets))
            .boxed()
            .toList();
    return !keys.isEmpty() && keys.stream().allMatch(i -> isLost(i, sets));
  }

  private static boolean isKey(Attribute column, Aggregate aggregate) {
    return Scala.list(aggregate.groupingExpressions()).stream().anyMatch(column::semanticEquals);
  }

  /** Whether Spark has made the column, to tell the sets apart. */
  private static boolean numbersTheSet(int column, Expand sets) {
    return Scala.list(sets.projections()).stream()
        .allMatch(p -> p.apply(column) instanceof Literal && !isNull(p.apply(column)));
  }

  private static boolean isLost(int column, Expand sets) {
    return Scala.list(sets.projections()).stream().anyMatch(p -> isNull(p.apply(column)));
  }

  private static boolean isNull(Expression value) {
    return value instanceof Literal literal && literal.value() == null;
  }
}

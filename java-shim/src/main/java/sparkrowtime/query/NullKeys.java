package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinConditionSplitPredicates;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinConditionSplitPredicates$;
import scala.Option;
import sparkrowtime.support.Scala;

/**
 * In SQL, NULL = NULL is not true. A stream-stream join looks its keys up in state, where NULL is
 * found like a value. Spark keeps such rows out by a filter, but not for a full outer join, nor where
 * a key is an expression. Here each key that can be NULL is a part of the condition: a row that has
 * one is not kept, and comes out of an outer join at once, without a match.
 *
 * <p>Law: keys of {@code <=>} are never NULL, Spark has put another value in; they stay as they are.
 */
final class NullKeys {
  private NullKeys() {}

  static StreamingSymmetricHashJoinExec unmatched(StreamingSymmetricHashJoinExec join) {
    List<Expression> keys = new ArrayList<>(Scala.list(join.leftKeys()));
    keys.addAll(Scala.list(join.rightKeys()));
    Expression full =
        keys.stream()
            .filter(Expression::nullable)
            .map(key -> (Expression) new IsNotNull(key))
            .reduce(Scala.orNull(join.condition().full()), NullKeys::and);
    return Scala.copy(
        join,
        JoinConditionSplitPredicates.class,
        JoinConditionSplitPredicates$.MODULE$.apply(Option.apply(full), join.left(), join.right()));
  }

  private static Expression and(Expression condition, Expression more) {
    return condition == null ? more : new And(condition, more);
  }
}

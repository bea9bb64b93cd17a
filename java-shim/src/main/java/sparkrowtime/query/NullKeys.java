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
 * Keeps rows whose key, or whose time, is NULL out of the state of joins. In SQL, NULL = NULL is not true, but a
 * stream-stream join looks its keys up in state, where NULL matches NULL. Spark filters such rows, but not
 * for a full outer join, nor if a key is an expression. A row with a NULL time matches nothing, but no watermark
 * passes it, so it would be kept forever. This class adds a null check of each nullable key, and of each
 * nullable time by which a side is freed, to the condition. So such a row is not kept, and an outer join outputs it
 * at once, without a match.
 *
 * <p>Law: keys of {@code <=>} are never NULL, since Spark replaces NULL by another value. They do not change.
 */
final class NullKeys {
  private NullKeys() {}

  static StreamingSymmetricHashJoinExec unmatched(StreamingSymmetricHashJoinExec join, JoinSides sides) {
    List<Expression> compared = new ArrayList<>(Scala.list(join.leftKeys()));
    compared.addAll(Scala.list(join.rightKeys()));
    compared.addAll(sides.times());
    Expression full =
        compared.stream()
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

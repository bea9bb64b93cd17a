package sparkrowtime.compat;

import static org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import scala.Option;
import scala.collection.immutable.Seq;

/** The predicates by which Spark evicts the rows of a join. Spark 4.0 and 4.1 have no previous watermark. */
public final class StatePredicates {
  private StatePredicates() {}

  public static JoinStateWatermarkPredicates of(
      Seq<Attribute> left,
      Seq<Attribute> right,
      Seq<Expression> leftKeys,
      Seq<Expression> rightKeys,
      Option<Expression> condition,
      long watermarkMs) {
    return getStateWatermarkPredicates(
        left, right, leftKeys, rightKeys, condition, Option.apply(watermarkMs), false);
  }
}

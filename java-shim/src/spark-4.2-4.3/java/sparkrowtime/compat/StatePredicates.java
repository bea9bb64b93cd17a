package sparkrowtime.compat;

import static org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.getStateWatermarkPredicates;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper.JoinStateWatermarkPredicates;
import scala.Option;
import scala.collection.immutable.Seq;

/** The predicates by which Spark evicts the rows of a join. There is no previous watermark, so that state format 4 looks at all its rows, and not at a range. */
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
        left, right, leftKeys, rightKeys, condition, Option.apply(watermarkMs), Option.empty(), false);
  }
}

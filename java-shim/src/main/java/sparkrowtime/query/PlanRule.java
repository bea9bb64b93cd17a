package sparkrowtime.query;

import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * A physical rule that rewrites nodes of every physical plan. Spark applies it in the thread that plans, after its own
 * rules and before code is generated.
 */
abstract class PlanRule extends ColumnarRule {
  /** What takes the place of a node, whose children are rewritten already; the node itself where nothing does. */
  abstract SparkPlan rewrite(SparkPlan node);

  @Override
  public final Rule<SparkPlan> preColumnarTransitions() {
    return new Rule<>() {
      @Override
      public SparkPlan apply(SparkPlan plan) {
        return ShimMismatch.guarded(() -> plan.transformUp(Scala.rewriting(PlanRule.this::rewrite)));
      }
    };
  }
}

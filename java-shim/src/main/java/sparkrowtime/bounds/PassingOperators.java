package sparkrowtime.bounds;

import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.SQLFunctionNode;
import org.apache.spark.sql.catalyst.expressions.PipeOperator;
import org.apache.spark.sql.catalyst.plans.logical.*;

/**
 * The operators with one input that pass on some of the rows of a batch in the same batch, and no other
 * rows. Their columns keep ids and values. A column that such an operator adds has a new id.
 *
 * <p>Law: the list is closed. An operator that is neither on it nor known to {@link PlanBounds} has no
 * bound, since it could keep rows, as EXCEPT ALL does. Each entry has a test in
 * tests/spark/test_shim_operators.py.
 */
public final class PassingOperators {
  private static final Set<Class<? extends LogicalPlan>> LIST =
      Set.of(
          Filter.class,
          SubqueryAlias.class,
          View.class,
          PipeOperator.class,
          SQLFunctionNode.class,
          EventTimeWatermark.class,
          Deduplicate.class,
          DeduplicateWithinWatermark.class,
          Generate.class,
          GlobalLimit.class,
          LocalLimit.class,
          Repartition.class,
          RepartitionByExpression.class,
          RebalancePartitions.class,
          ResolvedHint.class,
          CollectMetrics.class);

  private PassingOperators() {}

  static boolean has(LogicalPlan plan) {
    return LIST.contains(plan.getClass());
  }

  /**
   * DISTINCT, and EXCEPT with a table, which Spark rewrites to a DISTINCT over a join. They keep rows
   * until W passes them.
   */
  public static boolean isDistinct(LogicalPlan plan) {
    return plan instanceof Distinct || plan instanceof Except except && !except.isAll();
  }
}

package sparkrowtime.query;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * The check rule for the option of {@link CommittedBound} in a query that reads nothing with bounds. Spark analyzes the plan
 * of each batch in the query's thread, before the batch is written, and only there are the options of its sink in the plan.
 */
public final class RefuseUnboundedCommits extends AbstractFunction1<LogicalPlan, BoxedUnit> {
  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    String column = CommittedBound.named(plan);
    if (column != null && BoundedQuery.ofThisThread() == null) {
      throw CommittedBound.refused(
          column,
          "the query reads nothing that has bounds, so its commits would have none. Read a rowtime stream, or give the rows their"
              + " bounds by punctuate");
    }
    return BoxedUnit.UNIT;
  }
}

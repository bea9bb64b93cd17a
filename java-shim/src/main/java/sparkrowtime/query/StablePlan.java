package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Disables rules of Spark's optimizer. Some depend on the size of an input, and a stream without news in a
 * batch counts as small. Such a rule would give the query another plan in that batch, in which operators
 * read each other's state: it pushes a left semi join below an aggregation, splits a join with a union
 * into several joins, or leaves out a limit. RemoveRedundantAliases replaces a copy of a column of the same
 * name ({@code SELECT rowtime AS rowtime}, each column of a view defined in SQL) by that column. The operators
 * above then keep rows by a column other than in the analyzed plan, and no bound is found for it.
 * RemoveRedundantAggregates leaves out an aggregation by sessions below a DISTINCT, and sessions are not merged.
 *
 * <p>Nested pruning takes a field out of a struct below a join. The mark of a watermark, which the field has from
 * the column that it was made of, then is on a column that the analyzed plan does not have: the join drops rows by
 * it, or fails.
 *
 * <p>With the partitioning of a union's parts, an aggregation by the columns by which the parts are grouped, too, runs
 * in their tasks, and RocksDB fails, since a task of it has one store.
 *
 * <p>Law: a query has the same stateful operators in every batch, and they keep rows by columns of the
 * analyzed plan.
 */
final class StablePlan {
  private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
  private static final String NESTED_PRUNING = "spark.sql.optimizer.nestedSchemaPruning.enabled";
  private static final String UNION_PARTITIONING = "spark.sql.unionOutputPartitioning";
  private static final List<String> CHANGING =
      List.of(
          "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
          "org.apache.spark.sql.catalyst.optimizer.PushDownJoinThroughUnion",
          "org.apache.spark.sql.catalyst.optimizer.EliminateLimits",
          "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
          "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases",
          "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAggregates");

  private StablePlan() {}

  /** Called once a run. Changes the settings of the query's own session. */
  static void require(SQLConf conf, LogicalPlan plan) {
    List<String> rules = new ArrayList<>(CHANGING);
    if (SessionConditions.areIn(plan) || TableConditions.areIn(plan)) {
      rules.addAll(SessionConditions.MOVED_BY);
    }
    String before = conf.getConfString(EXCLUDED, "");
    if (!before.isBlank()) {
      rules.add(before);
    }
    conf.setConfString(EXCLUDED, String.join(",", rules));
    conf.setConfString(NESTED_PRUNING, "false");
    conf.setConfString(UNION_PARTITIONING, "false");
  }
}

package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Disables rules of Spark's optimizer that depend on the size of an input. A stream without news in a
 * batch counts as small. Such a rule would give the query another plan in that batch, in which operators
 * read each other's state: it pushes a left semi join below an aggregation, or splits a join with a union
 * into several joins.
 *
 * <p>Law: a query has the same stateful operators in every batch.
 */
final class StablePlan {
  private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
  private static final List<String> BY_SIZE =
      List.of(
          "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
          "org.apache.spark.sql.catalyst.optimizer.PushDownJoinThroughUnion");

  private StablePlan() {}

  /** Called once a run. Changes the settings of the query's own session. */
  static void require(SQLConf conf) {
    List<String> rules = new ArrayList<>(BY_SIZE);
    String before = conf.getConfString(EXCLUDED, "");
    if (!before.isBlank()) {
      rules.add(before);
    }
    conf.setConfString(EXCLUDED, String.join(",", rules));
  }
}

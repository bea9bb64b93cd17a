package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Keeps Spark's optimizer from rules that go by how large an input is. A stream that has nothing new
 * in a batch counts as small, so such a rule would give a query another plan in that batch, in which
 * operators read each other's state: a left semi join below the aggregation that it is written above,
 * a join with a union taken apart into joins.
 *
 * <p>Law: a query has the same operators with state in every batch.
 */
final class StablePlan {
  private static final String EXCLUDED = "spark.sql.optimizer.excludedRules";
  private static final List<String> BY_SIZE =
      List.of(
          "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
          "org.apache.spark.sql.catalyst.optimizer.PushDownJoinThroughUnion");

  private StablePlan() {}

  /** Once a run, in the settings of the query's own session. */
  static void require(SQLConf conf) {
    List<String> rules = new ArrayList<>(BY_SIZE);
    String before = conf.getConfString(EXCLUDED, "");
    if (!before.isBlank()) {
      rules.add(before);
    }
    conf.setConfString(EXCLUDED, String.join(",", rules));
  }
}

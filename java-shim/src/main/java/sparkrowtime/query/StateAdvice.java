package sparkrowtime.query;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinExec;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.support.Scala;

/**
 * Warnings about the cost of a query's state. They are logged once a run, when its first batch is planned:
 * for joins that never evict, and for more partitions than the cores can use.
 */
final class StateAdvice {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** Each further partition costs some 20 ms of a core in every batch, however few its rows are. */
  private static final int MOST_PER_CORE = 10;

  private boolean given;

  void give(SparkPlan plan, Map<Long, JoinSides> sides, int cores) {
    if (given) {
      return;
    }
    given = true;
    List<SparkPlan> nodes = Scala.list(plan.collect(Scala.only(SparkPlan.class)));
    nodes.stream()
        .filter(StreamingSymmetricHashJoinExec.class::isInstance)
        .forEach(join -> onJoin((StreamingSymmetricHashJoinExec) join, sides));
    nodes.stream()
        .filter(StateStoreWriter.class::isInstance)
        .mapToInt(node -> ((StateStoreWriter) node).stateInfo().get().numPartitions())
        .filter(partitions -> partitions > MOST_PER_CORE * cores)
        .max()
        .ifPresent(partitions -> onPartitions(partitions, cores));
  }

  private static void onJoin(StreamingSymmetricHashJoinExec join, Map<Long, JoinSides> all) {
    JoinSides sides = all.get(join.stateInfo().get().operatorId());
    if (sides != null && !sides.evictsBoth()) {
      LOG.warn(
          "The join on {} has no condition on both streams' times, so it keeps {} rows forever: its"
              + " state only grows. Add such a condition, for example b.rowtime BETWEEN a.rowtime AND a.rowtime +"
              + " INTERVAL 10 MINUTES, or join on equal windows.",
          JoinSides.condition(join),
          sides.keptForEver());
    }
  }

  private static void onPartitions(int partitions, int cores) {
    LOG.warn(
        "This query keeps its state in {} partitions, and there are {} cores: each batch, however small,"
            + " runs {} tasks for each operator with state. Set spark.sql.shuffle.partitions to about the"
            + " number of cores before the query's first start; a checkpoint keeps the number that it was"
            + " started with.",
        partitions,
        cores,
        partitions);
  }
}

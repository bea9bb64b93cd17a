package sparkrowtime.topics;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Scala;

/**
 * A stream of bounds beside the topics that its bounds are about. {@code punctuate} of the Python side makes a union
 * of two inputs: the first is the stream of bounds, read with option {@value #OPTION} and without its rows, so that
 * its position is in the offset log; the second is the rows of the topics.
 */
public final class TopicBounds {
  /** The option of the stream of bounds: the column of the rows that gets its watermark. */
  public static final String OPTION = "topicBounds";

  private TopicBounds() {}

  /** The branch of the bounds; null if the union is another one. */
  public static LogicalPlan branch(Union union) {
    return Scala.list(union.children()).stream().filter(c -> isBounds(leaf(c))).findFirst().orElse(null);
  }

  /** The branch of the rows. */
  public static LogicalPlan rows(Union union, LogicalPlan branch) {
    List<LogicalPlan> others = Scala.list(union.children()).stream().filter(c -> c != branch).toList();
    return others.size() == 1 ? others.get(0) : null;
  }

  /** The relation at the end of a chain of operators with one input each; the node where the chain forks, if it does. */
  public static LogicalPlan leaf(LogicalPlan plan) {
    return passes(plan) ? leaf(plan.children().apply(0)) : plan;
  }

  /** The closed list of operators between a source and {@code punctuate}. */
  public static boolean passes(LogicalPlan plan) {
    return plan instanceof Project || plan instanceof Filter || plan instanceof SubqueryAlias || plan instanceof View;
  }

  private static boolean isBounds(LogicalPlan leaf) {
    return leaf instanceof StreamingRelationV2 relation && relation.extraOptions().containsKey(OPTION)
        || leaf instanceof StreamingDataSourceV2ScanRelation scan
            && scan.stream() instanceof RowtimeStream stream
            && stream.unionId() != null;
  }
}

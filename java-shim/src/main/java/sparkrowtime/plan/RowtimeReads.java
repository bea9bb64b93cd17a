package sparkrowtime.plan;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import sparkrowtime.support.Rowtime;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableStream;

/** The streaming relations of sources with bounds, in a user's plan and in that of a run. */
public final class RowtimeReads {
  private RowtimeReads() {}

  /** Whether a node reads the rows of a stream, with their bounds. */
  public static boolean isRowtime(Object node) {
    return isView("rows", node);
  }

  /** The same, or it is the filter of the late rows of a table with bounds in its commits. */
  public static boolean isBounded(Object node) {
    return isRowtime(node) || InTable.of(node) != null;
  }

  /** The source of a table with bounds in its commits that a leaf of a run's plan reads; null if it reads another one. */
  public static TableStream table(LogicalPlan leaf) {
    SparkDataStream source = leaf instanceof StreamingExecutionRelation relation
        ? relation.source()
        : leaf instanceof StreamingDataSourceV2ScanRelation relation ? relation.stream() : null;
    return source instanceof TableStream table ? table : null;
  }

  /** Whether a node reads the late rows of a stream. */
  public static boolean isOfLateRows(Object node) {
    return isView("rejected", node);
  }

  /**
   * Whether a node gives the relation below it the name of {@code readStream.name}. Spark puts the name into the relation
   * and removes the node, if the relation is right below it. Spark 4.0 and 4.1 have no such node.
   */
  public static boolean isNaming(Object node) {
    return node instanceof LogicalPlan plan && plan.nodeName().equals("NamedStreamingRelation");
  }

  private static boolean isView(String view, Object node) {
    return node instanceof StreamingRelationV2 relation
        && relation.sourceName().equalsIgnoreCase(Rowtime.SOURCE)
        && "require".equalsIgnoreCase(relation.extraOptions().getOrDefault("bounds", "require"))
        && view.equalsIgnoreCase(relation.extraOptions().getOrDefault("view", "rows"));
  }
}

package sparkrowtime.plan;

import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import sparkrowtime.support.Rowtime;

/** The streaming relations of a rowtime source in a user's plan. In the plan of a batch Spark has replaced them. */
public final class RowtimeReads {
  private RowtimeReads() {}

  /** Whether a node reads the rows of a stream, with their bounds. */
  public static boolean isRowtime(Object node) {
    return isView("rows", node);
  }

  /** Whether a node reads the late rows of a stream. */
  public static boolean isOfLateRows(Object node) {
    return isView("rejected", node);
  }

  private static boolean isView(String view, Object node) {
    return node instanceof StreamingRelationV2 relation
        && relation.sourceName().equalsIgnoreCase(Rowtime.SOURCE)
        && !"ignore".equalsIgnoreCase(relation.extraOptions().get("bounds"))
        && view.equalsIgnoreCase(relation.extraOptions().getOrDefault("view", "rows"));
  }
}

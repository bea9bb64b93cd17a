package sparkrowtime.query;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.support.Scala;

/** The sources of a query, each with the joins and unions above it and its place in them, the topmost first. */
final class SourcePlaces {
  private final Definitions definitions;
  private final Map<SparkDataStream, List<String>> places = new LinkedHashMap<>();

  SourcePlaces(LogicalPlan plan) {
    definitions = new Definitions(plan);
    visit(plan, List.of());
  }

  void forEach(BiConsumer<SparkDataStream, List<String>> action) {
    places.forEach(action);
  }

  /** Whether a node of a plan is the source itself. */
  static boolean reads(LogicalPlan plan, SparkDataStream stream) {
    return source(plan) == stream;
  }

  private static SparkDataStream source(LogicalPlan plan) {
    if (plan instanceof StreamingDataSourceV2ScanRelation relation) {
      return relation.stream();
    }
    return plan instanceof StreamingExecutionRelation relation ? relation.source() : null;
  }

  private void visit(LogicalPlan plan, List<String> above) {
    if (definitions.body(plan) != null) {
      visit(definitions.body(plan), above);
    } else if (source(plan) != null) {
      places.putIfAbsent(source(plan), above);
    } else if (plan instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      visit(join.left(), with(above, "left side of the " + join.joinType().sql() + " JOIN"));
      visit(join.right(), with(above, "right side of the " + join.joinType().sql() + " JOIN"));
    } else if (plan instanceof Union union) {
      List<LogicalPlan> inputs = Scala.list(union.children());
      for (int i = 0; i < inputs.size(); i++) {
        visit(inputs.get(i), with(above, "input " + (i + 1) + " of the UNION"));
      }
    } else {
      Scala.list(plan.children()).stream().filter(LogicalPlan::isStreaming).forEach(child -> visit(child, above));
    }
  }

  private static List<String> with(List<String> above, String place) {
    List<String> all = new ArrayList<>(above);
    all.add(place);
    return all;
  }
}

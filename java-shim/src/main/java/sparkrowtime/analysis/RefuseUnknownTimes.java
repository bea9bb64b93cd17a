package sparkrowtime.analysis;

import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.plans.logical.*;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.Origin;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses an operator that keeps rows by a time that has only Spark's mark of a watermark, and not a
 * watermark. It would drop the rows that are late by the watermark of another column.
 */
final class RefuseUnknownTimes {
  private final KnownTimes times;

  private RefuseUnknownTimes(LogicalPlan plan) {
    times = new KnownTimes(new Definitions(plan));
  }

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(new RefuseUnknownTimes(plan)::checkNode));
  }

  private void checkNode(LogicalPlan node) {
    times(node)
        .filter(e -> isMarked(e) && !times.isKnownBelow(e, node))
        .findFirst()
        .ifPresent(e -> refuse(e, node));
  }

  /** Spark makes a group by a field into a column, and gives it the mark of the field. */
  private static boolean isMarked(Expression e) {
    return e instanceof Attribute a && Rowtime.isWatermarked(a)
        || e instanceof GetStructField field && Rowtime.isWatermarked(field.metadata());
  }

  private static void refuse(Expression e, LogicalPlan node) {
    String time = e instanceof Attribute a ? a.name() + " (" + Origin.of(a, node) + ")" : e.sql();
    throw new IllegalArgumentException(
        node.nodeName() + " keeps rows by the time " + time + ", but no"
            + " watermark is known for this time: the column only has a watermark's mark in its metadata. Such a mark"
            + " is copied with a schema or with metadata (give mapInPandas its schema as text, and alias without"
            + " metadata), out of a struct that was grouped by, aggregated or joined (keep the time as a column of its"
            + " own), and by a union with a stream, a column or a field that has no watermark. Call withWatermark on the"
            + " column after that step; where an input of a union keeps rows itself, write its results into a stream, and"
            + " read that in a second query. For a union, option punctuate=true on the rowtime stream declares that"
            + " its bound also holds for the other input.");
  }

  /**
   * The columns by which a node may keep rows, or drop late ones. An aggregation sees only its groups: what
   * is computed of a time is no time. If there is a
   * watermark, a deduplication or a join drops rows by any marked column, also by one that is no key and in no
   * condition.
   */
  private static Stream<? extends Expression> times(LogicalPlan node) {
    if (!StatefulNodes.keepsRows(node)) {
      return Stream.of();
    } else if (node instanceof Aggregate aggregate) {
      return Scala.list(aggregate.groupingExpressions()).stream();
    } else if (node instanceof Deduplicate deduplicate && !hasWatermark(node)) {
      return Scala.list(deduplicate.keys()).stream();
    } else if (node instanceof Join join && !hasWatermark(node)) {
      return Stream.ofNullable(Scala.orNull(join.condition())).flatMap(RefuseUnknownTimes::withReferences);
    }
    return Scala.list(node.children()).stream()
        .filter(LogicalPlan::isStreaming)
        .flatMap(c -> Scala.list(c.output()).stream());
  }

  private static boolean hasWatermark(LogicalPlan plan) {
    return plan.exists(
        Scala.function(n -> n instanceof EventTimeWatermark || n instanceof UpdateEventTimeWatermarkColumn));
  }

  private static Stream<Expression> withReferences(Expression e) {
    return Stream.concat(Stream.of(e), Scala.list(e.references().toSeq()).stream());
  }
}

package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.topics.TopicBounds;

/**
 * Refuses {@code punctuate} where the offset of a row is not known, where its time can be NULL, or where the stream of
 * bounds could not keep a late row.
 */
final class RefuseTopics {
  private final Definitions definitions;

  private RefuseTopics(LogicalPlan plan) {
    definitions = new Definitions(plan);
  }

  static void check(LogicalPlan plan) {
    plan.foreach(Scala.each(new RefuseTopics(plan)::checkNode));
  }

  private void checkNode(LogicalPlan node) {
    LogicalPlan branch = node instanceof Union union ? TopicBounds.branch(union) : null;
    if (branch != null) {
      LogicalPlan rows = TopicBounds.rows((Union) node, branch);
      StreamingRelationV2 bounds = (StreamingRelationV2) TopicBounds.leaf(branch);
      String time = bounds.extraOptions().get(TopicBounds.OPTION);
      if (rows == null) {
        throw refused(time, "Spark has made its union with the bounds one with another union. Put a filter between them");
      }
      checkOperators(rows, time);
      checkTime(time, rows);
      checkKept(bounds);
    }
  }

  private static void checkOperators(LogicalPlan plan, String time) {
    if (plan instanceof EventTimeWatermark) {
      throw refused(time, "withWatermark, or another punctuate, is below it. Leave that out: the bounds are the watermark");
    } else if (TopicBounds.passes(plan)) {
      checkOperators(plan.children().apply(0), time);
    } else if (TopicUnion.topic(plan) == null) {
      throw refused(
          time,
          source(plan)
              + " is below it. A bound is about offsets of a topic, so only select, withColumn and where can be"
              + " between format(\"kafka\") and punctuate. Call punctuate on the parsed topic, and put all else above it");
    }
  }

  static String source(LogicalPlan plan) {
    return plan instanceof StreamingRelationV2 r ? "format(\"" + r.sourceName() + "\")" : plan.nodeName();
  }

  private void checkTime(String name, LogicalPlan rows) {
    checkTime(Scala.list(rows.output()).stream().filter(a -> a.name().equals(name)).findFirst().get(), rows, definitions);
  }

  static void checkTime(Attribute time, LogicalPlan rows, Definitions definitions) {
    NullableTimes times = new NullableTimes(definitions);
    String name = time.name();
    if (times.canBeNull(time, rows)) {
      throw refused(
          name,
          "this time can be NULL, since " + times.reason() + ", and a row without a time is never late and never"
              + " complete. Leave such rows out before (WHERE " + name + " IS NOT NULL), and count them there");
    }
  }

  private static void checkKept(StreamingRelationV2 bounds) {
    for (Object column : Scala.list(bounds.output())) {
      if (column instanceof Attribute a && !a.nullable() && !Rowtime.isRowtime(a)) {
        throw refused(
            bounds.extraOptions().get(TopicBounds.OPTION),
            "the stream of the bounds has the column " + a.name() + " NOT NULL, but it keeps late rows, of which that"
                + " column may be NULL. Create it with nullable columns, or with rowtime alone");
      }
    }
  }

  static IllegalArgumentException refused(String time, String why) {
    return new IllegalArgumentException("punctuate(df, \"" + time + "\", ...): " + why + ".");
  }
}

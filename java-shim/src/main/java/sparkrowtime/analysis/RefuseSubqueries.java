package sparkrowtime.analysis;

import org.apache.spark.sql.catalyst.optimizer.OptimizeOneRowRelationSubquery$;
import org.apache.spark.sql.catalyst.optimizer.PullupCorrelatedPredicates$;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin;
import org.apache.spark.sql.catalyst.plans.logical.DomainJoin;
import org.apache.spark.sql.catalyst.plans.logical.LateralJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * Refuses a sub-query over a table that Spark computes for the distinct values that the rows of a stream have: an
 * aggregate or a limit whose condition compares the table with the stream by something else than equality, or a total
 * that LATERAL needs for every row. The optimizer adds an aggregation of the stream by these values, and a join of the
 * stream with that. Without a time among them neither is ever complete, and the first batch would fail, with an error
 * about operators that the user has not written. The same holds for the outer join of a scalar sub-query, and so for an
 * as-of join.
 */
final class RefuseSubqueries {
  private RefuseSubqueries() {}

  static void check(LogicalPlan plan) {
    AnalysisHelper$.MODULE$
        .allowInvokingTransformsInAnalyzer(Scala.call(() -> pulledUp(plan)))
        .foreach(Scala.each(RefuseSubqueries::checkNode));
  }

  /**
   * The plan as Spark's optimizer has it before it joins sub-queries. Where that needs more rules, as for a WITH of a
   * sub-query, the plan as it is: then the first batch decides.
   */
  private static LogicalPlan pulledUp(LogicalPlan plan) {
    LogicalPlan bare = plan.transformUpWithSubqueries(Scala.rewriting(RefuseSubqueries::bare));
    try {
      return PullupCorrelatedPredicates$.MODULE$.apply(OptimizeOneRowRelationSubquery$.MODULE$.apply(bare));
    } catch (Exception unsupported) {
      return plan;
    }
  }

  private static LogicalPlan bare(LogicalPlan node) {
    return node instanceof SubqueryAlias alias ? alias.child() : node;
  }

  private static void checkNode(LogicalPlan node) {
    if (node.isStreaming() && node instanceof AsOfJoin join) {
      throw new IllegalArgumentException(
          "Spark computes an ASOF JOIN by an aggregation of all rows of both sides, which is never complete over a"
              + " stream: " + node.simpleString(20) + ". This library computes one over two streams whose"
              + " MATCH_CONDITION is left >= right of their watermarked times, and whose ON has equal keys alone; here "
              + new AsOfForm(join).reason() + ". Other forms are in"
              + " spark_rowtime.operators.asofJoin(left, right, on=\"rowtime\", by=...), in Python. For a table, give"
              + " its rows the time until which they are valid, and join by a range.");
    }
    if (node.isStreaming() && isEndless(node)) {
      throw new IllegalArgumentException(
          "Spark computes this sub-query of a stream's rows by an aggregation of the stream, and by a join of the stream"
              + " with that, which are never complete: " + node.simpleString(20) + ". Compare the table with the stream"
              + " by equal columns alone, as in (SELECT max(t.x) FROM t WHERE t.k = s.k); or join the table by the range,"
              + " with an aggregation by rowtime and the other columns above; or do it in mapInPandas. In a LATERAL, take"
              + " the stream's columns out of its SELECT list.");
    }
  }

  private static boolean isEndless(LogicalPlan node) {
    boolean inner = node instanceof LateralJoin join && join.joinType().equals(Inner$.MODULE$);
    return Scala.list(node.subqueries()).stream()
        .anyMatch(query -> query.exists(Scala.function(part -> part instanceof DomainJoin d && !(inner && hasTime(d)))));
  }

  private static boolean hasTime(DomainJoin domain) {
    return Scala.list(domain.domainAttrs()).stream().anyMatch(Rowtime::isWatermarked);
  }
}

package sparkrowtime.analysis;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.AnalysisHelper$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.Option;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.InTable;
import sparkrowtime.topics.TopicBounds;

/**
 * A table that a query has twice, as where a punctuated frame is joined with itself, becomes one source. Spark has made copies
 * of its relation, and would read each of them by itself; a copy becomes a projection of the first relation, as in a union.
 *
 * <p>Law: relations below filters with one mark are the same relation. So both sides have the same rows in each batch, the
 * same bound, and the same late rows.
 */
final class OneRead {
  private final Map<String, LogicalPlan> first = new HashMap<>();

  private OneRead() {}

  static LogicalPlan of(LogicalPlan plan) {
    return AnalysisHelper$.MODULE$.allowInvokingTransformsInAnalyzer(Scala.call(() -> new OneRead().in(plan)));
  }

  private LogicalPlan in(LogicalPlan plan) {
    return plan.transformUp(Scala.rewriting(node -> InTable.of(node) == null ? node : shared((Filter) node)));
  }

  private LogicalPlan shared(Filter filter) {
    LogicalPlan copy = TopicBounds.leaf(filter.child());
    LogicalPlan relation = first.computeIfAbsent(InTable.of(filter).id(), id -> copy);
    return relation.fastEquals(copy)
        ? filter
        : filter.transformUp(Scala.rewriting(node -> node == copy ? renamed(relation, copy) : node));
  }

  /** The relation with the columns of its copy. */
  private static LogicalPlan renamed(LogicalPlan relation, LogicalPlan copy) {
    List<Attribute> from = Scala.list(relation.output());
    List<Attribute> to = Scala.list(copy.output());
    List<NamedExpression> columns = IntStream.range(0, to.size()).mapToObj(i -> renamed(from.get(i), to.get(i))).toList();
    return new Project(Scala.seq(columns), relation);
  }

  private static NamedExpression renamed(Attribute from, Attribute to) {
    return new Alias(
        (Expression) from, to.name(), to.exprId(), to.qualifier(), Option.apply(to.metadata()), Scala.seq(List.of()));
  }
}

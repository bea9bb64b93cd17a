package sparkrowtime.query;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Scala;

/**
 * Finds what Spark's optimizer could make a condition on the start or end of sessions of, such as {@code WHERE w.end -
 * w.start > INTERVAL 1 HOUR}, {@code LATERAL}, or {@code explode} of an array that is computed from them. The optimizer
 * takes a session for a key like any other, and moves such a condition to below the aggregation. There it would select
 * rows by the session of each row alone, before sessions are merged.
 *
 * <p>Law: a session consists of all its rows, whatever a query asks of its start and end.
 */
final class SessionConditions {
  private static final String RULES = "org.apache.spark.sql.catalyst.optimizer.";

  /** The rules that move or copy a condition. Without them a condition stays where it is written. */
  static final List<String> MOVED_BY =
      List.of(
          RULES + "PushDownPredicates",
          RULES + "PushPredicateThroughNonJoin",
          RULES + "PushPredicateThroughJoin",
          RULES + "InferFiltersFromConstraints",
          RULES + "InferFiltersFromGenerate");

  private final Definitions withNames;

  /** The nodes of the plan and of its sub-queries. */
  private final List<LogicalPlan> nodes = new ArrayList<>();

  /** The columns that are sessions, or computed from one. Also some that only have the same id. */
  private final Set<ExprId> ofSessions = new HashSet<>();

  private SessionConditions(LogicalPlan plan) {
    withNames = new Definitions(plan);
    plan.foreachWithSubqueries(Scala.each(nodes::add));
    int before;
    do { // the definition of a name of WITH may come behind the name
      before = ofSessions.size();
      nodes.forEach(this::add);
    } while (ofSessions.size() > before);
  }

  static boolean areIn(LogicalPlan plan) {
    SessionConditions sessions = new SessionConditions(plan);
    return sessions.nodes.stream().anyMatch(sessions::isCondition);
  }

  /** True for every use of a session, but in nodes that only compute, group or pass on columns. */
  private boolean isCondition(LogicalPlan node) {
    boolean computes =
        node instanceof Project
            || node instanceof Aggregate
            || node instanceof Union
            || node instanceof EventTimeWatermark;
    return expressions(node).anyMatch(e -> computes ? e.exists(Scala.function(this::isSubquery)) : isOfSession(e));
  }

  private boolean isSubquery(Object part) {
    return part instanceof SubqueryExpression query && isOfSession(query);
  }

  private void add(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      Scala.list(aggregate.groupingExpressions()).forEach(this::addSession);
    } else if (node instanceof Union union) {
      Scala.list(union.children()).forEach(part -> addPlaces(part, union));
    } else if (node instanceof CTERelationRef && withNames.body(node) != null) {
      addPlaces(withNames.body(node), node);
    }
    expressions(node).forEach(e -> e.foreach(Scala.each(this::addComputed)));
  }

  private void addSession(Expression key) {
    if (key instanceof NamedExpression session && WindowBounds.isSession(session)) {
      ofSessions.add(session.exprId());
    }
  }

  private void addComputed(Object part) {
    if (part instanceof Alias alias && isOfSession(alias)) {
      ofSessions.add(alias.exprId());
    }
  }

  /** Columns of {@code above} whose values are those of the column of {@code below} at the same place. */
  private void addPlaces(LogicalPlan below, LogicalPlan above) {
    for (int i = 0; i < below.output().size(); i++) {
      if (ofSessions.contains(below.output().apply(i).exprId())) {
        ofSessions.add(above.output().apply(i).exprId());
      }
    }
  }

  private boolean isOfSession(Expression e) {
    return Scala.list(e.references().toSeq()).stream().map(Attribute::exprId).anyMatch(ofSessions::contains);
  }

  private static Stream<Expression> expressions(LogicalPlan node) {
    return Scala.list(node.expressions()).stream();
  }
}

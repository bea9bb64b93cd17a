package sparkrowtime.analysis;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import scala.None$;
import sparkrowtime.support.Scala;

/**
 * Leaves out of the state of each ASOF JOIN the columns that the query does not need. Spark cannot, since a state
 * function takes whole rows. In the place of such a column is NULL, which nothing reads.
 *
 * <p>Laws: of an operator that is not in the list of {@link #needs}, all columns of its input are needed. What is needed
 * depends on the query alone, so it is the same in each batch and each run.
 */
final class AsOfColumns {
  /** Which columns of a WITH, by position, the references to it need. */
  private final Map<Long, Set<Integer>> ofDefinitions = new HashMap<>();

  private AsOfColumns() {}

  static LogicalPlan needed(LogicalPlan query) {
    return query.exists(Scala.function(AsOfColumns::isOperator))
        ? new AsOfColumns().within(query, ids(Scala.list(query.output())))
        : query;
  }

  private static boolean isOperator(LogicalPlan node) {
    return node instanceof Project && NarrowAsOf.isEndOf(node.children().apply(0));
  }

  private LogicalPlan within(LogicalPlan node, Set<ExprId> wanted) {
    if (node instanceof WithCTE with) {
      return withDefinitions(with, wanted);
    }
    if (node instanceof CTERelationRef reference) {
      note(reference, wanted);
    }
    LogicalPlan kept = isOperator(node) ? narrowed((Project) node, wanted) : node;
    List<LogicalPlan> children = Scala.list(kept.children());
    List<LogicalPlan> changed =
        IntStream.range(0, children.size()).mapToObj(i -> within(children.get(i), needs(kept, i, wanted))).toList();
    return kept.withNewChildren(Scala.seq(changed));
  }

  /** What a node needs of one of its children if {@code wanted} is needed of its own columns. */
  private static Set<ExprId> needs(LogicalPlan node, int child, Set<ExprId> wanted) {
    List<Attribute> input = Scala.list(node.children().apply(child).output());
    if (node instanceof Project project) {
      return references(Scala.list(project.projectList()), wanted);
    } else if (node instanceof Aggregate) {
      return ids(Scala.list(node.references().toSeq()));
    } else if (node instanceof Union) {
      List<Attribute> output = Scala.list(node.output());
      return ids(IntStream.range(0, input.size()).filter(i -> wanted.contains(output.get(i).exprId())).mapToObj(input::get).toList());
    } else if (passes(node)) {
      Set<ExprId> both = ids(Scala.list(node.references().toSeq()));
      both.addAll(wanted);
      return both;
    }
    return ids(input);
  }

  /** Whether the columns of a node are those of its children. */
  private static boolean passes(LogicalPlan node) {
    boolean known = node instanceof Filter
        || node instanceof SubqueryAlias
        || node instanceof View
        || node instanceof EventTimeWatermark
        || node instanceof CTERelationDef
        || node instanceof Join;
    return known && node.outputSet().subsetOf(node.inputSet());
  }

  private LogicalPlan withDefinitions(WithCTE with, Set<ExprId> wanted) {
    List<LogicalPlan> changed = new ArrayList<>();
    changed.add(within(with.plan(), wanted));
    List<CTERelationDef> definitions = Scala.list(with.cteDefs());
    for (int i = definitions.size() - 1; i >= 0; i--) {
      changed.add(0, within(definitions.get(i), ofDefinition(definitions.get(i))));
    }
    return with.withNewChildren(Scala.seq(changed));
  }

  private void note(CTERelationRef reference, Set<ExprId> wanted) {
    List<Attribute> columns = Scala.list(reference.output());
    Set<Integer> places = ofDefinitions.computeIfAbsent(reference.cteId(), id -> new HashSet<>());
    IntStream.range(0, columns.size()).filter(i -> wanted.contains(columns.get(i).exprId())).forEach(places::add);
  }

  private Set<ExprId> ofDefinition(CTERelationDef definition) {
    Set<Integer> places = ofDefinitions.getOrDefault(definition.id(), Set.of());
    List<Attribute> columns = Scala.list(definition.output());
    return ids(places.stream().map(columns::get).toList());
  }

  private static Project narrowed(Project names, Set<ExprId> wanted) {
    LogicalPlan operator = names.children().apply(0);
    Set<ExprId> used = references(Scala.list(names.projectList()), wanted);
    List<Attribute> columns = Scala.list(operator.output());
    List<Attribute> kept = columns.stream()
        .filter(c -> used.contains(c.exprId()) || !NarrowAsOf.mayBeLeftOut(c))
        .toList();
    if (kept.size() == columns.size()) {
      return names;
    }
    Set<ExprId> there = ids(kept);
    List<NamedExpression> named = Scala.list(names.projectList()).stream()
        .map(name -> there.containsAll(references(name)) ? name : unread(name))
        .toList();
    return new Project(Scala.seq(named), NarrowAsOf.of(operator, kept));
  }

  private static NamedExpression unread(NamedExpression column) {
    Literal nothing = Literal.create(null, ((Expression) column).dataType());
    return new Alias(nothing, column.name(), column.exprId(), column.qualifier(), None$.empty(), Scala.seq(List.of()));
  }

  private static Set<ExprId> references(List<NamedExpression> columns, Set<ExprId> wanted) {
    return columns.stream()
        .filter(column -> wanted.contains(column.exprId()))
        .flatMap(column -> references(column).stream())
        .collect(Collectors.toCollection(HashSet::new));
  }

  private static Set<ExprId> references(NamedExpression column) {
    return ids(Scala.list(((Expression) column).references().toSeq()));
  }

  private static Set<ExprId> ids(List<? extends NamedExpression> columns) {
    return columns.stream().map(NamedExpression::exprId).collect(Collectors.toCollection(HashSet::new));
  }
}

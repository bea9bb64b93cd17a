package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.analysis.SQLScalarFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.PreciseTimestampConversion;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandasWithState;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsWithState;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithState;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.bounds.WindowBounds;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The times by which a query keeps its state, as they were when its checkpoint was created: the sizes and
 * steps of windows, and the expressions that compute a time, from the stream's own time on: the unit of
 * date_trunc, the interval of a shift. Spark's checkpoint does not contain them, and a query that is started
 * again with other ones would mix the old times in its state with new ones. They are in a file beside the
 * offset log, written by the first run that finds none. Called once a run, in the query's thread.
 */
final class CheckpointedTimes {
  private static final String FILE = "rowtime-times.json";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** The literals of every window: the names of its fields, and a start at the epoch. */
  private static final Set<String> IN_ALL_WINDOWS = Set.of("'start'", "'end'", "0L", "0");

  /** Stands for a column that is not computed in the query. */
  private static final String AS_READ = "time";

  /** What each column is computed from. A column of a UNION, whose id is that of its first part, has several. */
  private final Map<ExprId, List<Expression>> definitions = new HashMap<>();

  private final Definitions withNames;

  private CheckpointedTimes(LogicalPlan plan) {
    withNames = new Definitions(plan);
    plan.foreach(Scala.each(this::define));
  }

  static void check(MicroBatchExecution query) {
    LogicalPlan plan = query.logicalPlan();
    List<String> now = new CheckpointedTimes(plan).in(plan);
    CheckpointFile file = new CheckpointFile(query, FILE);
    boolean isNew = query.commitLog().getLatest().isEmpty();  // there is no state yet
    try {
      refuseOther(MAPPER.readValue(file.first(isNew, MAPPER.writeValueAsString(now)), List.class), now, file);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is not the JSON list that a query writes into it.", e);
    }
  }

  private static void refuseOther(List<?> before, List<String> now, CheckpointFile file) {
    if (!before.equals(now)) {
      throw new IllegalArgumentException(
          "This query keeps its state by " + shown(now) + ", but its checkpoint was begun with " + shown(before)
              + ": the state has the old times, and results of both would be mixed. Set the old sizes and"
              + " expressions back, or start with a new checkpoint and a new output. (Windows are given by their"
              + " sizes and steps in microseconds, as in " + file + ".)");
    }
  }

  private static String shown(List<?> times) {
    return times.isEmpty() ? "no computed time" : times.toString();
  }

  private void define(LogicalPlan node) {
    Scala.list(node.expressions()).forEach(e -> e.foreach(Scala.each(this::define)));
    LogicalPlan body = withNames.body(node);
    if (body != null) {
      define(node, body);
    }
    if (node instanceof Expand expand) {
      for (int i = 0; i < expand.output().size(); i++) {
        define(expand.output().apply(i), expand.projections().head().apply(i));
      }
    } else if (node instanceof Union union) {
      Scala.list(union.children()).forEach(child -> define(union, child));
    }
  }

  private void define(LogicalPlan node, LogicalPlan part) {
    for (int i = 0; i < node.output().size(); i++) {
      define(node.output().apply(i), part.output().apply(i));
    }
  }

  /** A column that is only passed on has the id that it had below. */
  private void define(Attribute column, Expression made) {
    if (!(made instanceof Attribute same && same.exprId().equals(column.exprId()))) {
      add(column.exprId(), made);
    }
  }

  private void define(Object e) {
    if (e instanceof Alias alias) {
      add(alias.exprId(), alias.child());
    }
  }

  private void add(ExprId id, Expression made) {
    List<Expression> all = definitions.computeIfAbsent(id, any -> new ArrayList<>());
    if (all.stream().noneMatch(made::semanticEquals)) {
      all.add(made);
    }
  }

  private List<String> in(LogicalPlan plan) {
    List<LogicalPlan> nodes = Scala.list(plan.collect(Scala.only(LogicalPlan.class)));
    return nodes.stream()
        .filter(LogicalPlan::isStreaming)
        .flatMap(CheckpointedTimes::keys)
        .flatMap(e -> Scala.list(e.references().toSeq()).stream())
        .filter(Rowtime::isWatermarked)
        .flatMap(column -> texts(column, Set.of()).stream())
        .filter(text -> !text.equals(AS_READ))
        .sorted()
        .toList();
  }

  private static Stream<Expression> keys(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      return Scala.list(aggregate.groupingExpressions()).stream();
    } else if (node instanceof Deduplicate deduplicate) {
      return Scala.list(deduplicate.keys()).stream().map(a -> (Expression) a);
    } else if (PassingOperators.isDistinct(node)) {
      return output(node);
    } else if (node instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      return Stream.ofNullable(Scala.orNull(join.condition()));
    }
    return keepsByTime(node) ? Scala.list(node.children()).stream().flatMap(CheckpointedTimes::output) : Stream.of();
  }

  /** Operators whose state has times of its input, whatever their columns are. */
  private static boolean keepsByTime(LogicalPlan node) {
    return node instanceof DeduplicateWithinWatermark
        || node instanceof FlatMapGroupsWithState
        || node instanceof FlatMapGroupsInPandasWithState
        || node instanceof TransformWithState
        || node instanceof TransformWithStateInPySpark;
  }

  private static Stream<Expression> output(LogicalPlan plan) {
    return Scala.list(plan.output()).stream().map(a -> (Expression) a);
  }

  /** How a column is computed from columns that are as they were read; {@link #AS_READ} for such a column. */
  private List<String> texts(Attribute column, Set<ExprId> above) {
    List<Expression> made = above.contains(column.exprId()) ? null : definitions.get(column.exprId());
    if (made == null) {
      return List.of(AS_READ);
    }
    Set<ExprId> path = new HashSet<>(above);
    path.add(column.exprId());
    return made.stream().flatMap(e -> texts(e, path).stream()).distinct().sorted().toList();
  }

  private List<String> texts(Expression e, Set<ExprId> above) {
    if (e instanceof Attribute column) {
      return texts(column, above);
    } else if (e instanceof Alias || e instanceof GetStructField) {
      return texts(e.children().head(), above);
    }
    List<PreciseTimestampConversion> read = WindowBounds.times(e);
    return read.isEmpty()
        ? List.of(written(e, above))
        : texts(read.get(0).child(), above).stream().map(time -> sizes(e) + of(time)).toList();
  }

  /** The literals in the arithmetic of a window. */
  private static String sizes(Expression window) {
    return Scala.list(window.collect(Scala.only(Literal.class))).stream()
        .map(Literal::sql)
        .filter(sql -> !IN_ALL_WINDOWS.contains(sql))
        .distinct()
        .sorted()
        .collect(Collectors.joining(", "));
  }

  private static String of(String time) {
    return time.equals(AS_READ) ? "" : " of " + time;
  }

  /** The expression as SQL. Its columns are replaced by what they are computed from, so their names do not count. */
  private String written(Expression e, Set<ExprId> above) {
    return e.transformUp(Scala.rewriting(part -> plain(part, above))).sql().replace("`", "");
  }

  private Expression plain(Expression e, Set<ExprId> above) {
    boolean sameType = e instanceof Cast cast && cast.child().dataType().equals(cast.dataType());
    if (sameType || e instanceof RuntimeReplaceable || e instanceof SQLScalarFunction) {
      return e.children().head();  // of the others, SQL would show the columns as they were written, or a name only
    }
    return e instanceof Attribute column ? named(column, above) : e;
  }

  private Expression named(Attribute column, Set<ExprId> above) {
    return column.withName(String.join(" or ", texts(column, above))).withQualifier(Scala.seq(List.of()));
  }
}

package sparkrowtime.query;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The times by which a query keeps its state, as they were when its checkpoint was created: the sizes and
 * steps of windows, the unit of date_trunc. Spark's checkpoint does not contain them, and a query that is
 * started again with another size would continue with the windows of the old one. They are in a file
 * beside the offset log, written by the first run that finds none. Called once a run, in the query's
 * thread.
 */
final class CheckpointedTimes {
  private static final String FILE = "rowtime-times.json";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** The literals of every window: the names of its fields, and a start at the epoch. */
  private static final Set<String> IN_ALL_WINDOWS = Set.of("'start'", "'end'", "0L", "0");

  private final Map<ExprId, Expression> definitions = new HashMap<>();

  private final Definitions withNames;

  private CheckpointedTimes(LogicalPlan plan) {
    withNames = new Definitions(plan);
    plan.foreach(Scala.each(this::define));
  }

  static void check(MicroBatchExecution execution) {
    LogicalPlan plan = execution.logicalPlan();
    List<String> now = new CheckpointedTimes(plan).in(plan);
    Path root = new Path(execution.resolvedCheckpointRoot());
    CheckpointFileManager files =
        CheckpointFileManager$.MODULE$.create(
            root, execution.sparkSessionForStream().sessionState().newHadoopConf());
    try {
      Path file = new Path(root, FILE);
      if (execution.commitLog().getLatest().isEmpty() || !files.exists(file)) {
        write(files, file, now);  // there is no state yet
      } else {
        compare(files, file, now);
      }
    } catch (IOException e) {
      throw new IllegalStateException("Cannot read or write " + FILE + " in the checkpoint " + root + ".", e);
    }
  }

  private static void compare(CheckpointFileManager files, Path file, List<String> now) throws IOException {
    try (InputStream in = files.open(file)) {
      List<?> before = MAPPER.readValue(in, List.class);
      if (!before.equals(now)) {
        throw new IllegalArgumentException(
            "This query keeps its state by " + shown(now) + ", but its checkpoint was begun with " + shown(before)
                + ": the state has windows of the old size, and results of both would be mixed. Set the old"
                + " sizes back, or start with a new checkpoint and a new output. (Windows are given by their"
                + " sizes and steps in microseconds, as in " + file + ".)");
      }
    }
  }

  private static void write(CheckpointFileManager files, Path file, List<String> now) throws IOException {
    try (OutputStream out = files.createAtomic(file, true)) {
      out.write(MAPPER.writeValueAsBytes(now));
    }
  }

  private static String shown(List<?> times) {
    return times.isEmpty() ? "no computed time" : times.toString();
  }

  private void define(LogicalPlan node) {
    Scala.list(node.expressions()).forEach(e -> e.foreach(Scala.each(this::define)));
    LogicalPlan body = withNames.body(node);
    if (body != null) {
      for (int i = 0; i < node.output().size(); i++) {
        define(node.output().apply(i), body.output().apply(i));
      }
    }
    if (node instanceof Expand expand) {
      for (int i = 0; i < expand.output().size(); i++) {
        define(expand.output().apply(i), expand.projections().head().apply(i));
      }
    }
  }

  /** A column that is only passed on has the id that it had below. */
  private void define(Attribute column, Expression made) {
    if (!(made instanceof Attribute same && same.exprId().equals(column.exprId()))) {
      definitions.putIfAbsent(column.exprId(), made);
    }
  }

  private void define(Object e) {
    if (e instanceof Alias alias) {
      definitions.putIfAbsent(alias.exprId(), alias.child());
    }
  }

  private List<String> in(LogicalPlan plan) {
    List<LogicalPlan> nodes = Scala.list(plan.collect(Scala.only(LogicalPlan.class)));
    return nodes.stream()
        .filter(LogicalPlan::isStreaming)
        .flatMap(CheckpointedTimes::keys)
        .flatMap(e -> Scala.list(e.references().toSeq()).stream())
        .filter(Rowtime::isWatermarked)
        .map(this::literals)
        .filter(text -> !text.isEmpty())
        .sorted()
        .toList();
  }

  private static Stream<Expression> keys(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      return Scala.list(aggregate.groupingExpressions()).stream();
    } else if (node instanceof Deduplicate deduplicate) {
      return Scala.list(deduplicate.keys()).stream().map(a -> (Expression) a);
    } else if (PassingOperators.isDistinct(node)) {
      return Scala.list(node.output()).stream().map(a -> (Expression) a);
    } else if (node instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      return Stream.ofNullable(Scala.orNull(join.condition()));
    }
    return Stream.of();
  }

  /** The literals in a column's expression; empty for a column that is as it was read. */
  private String literals(Attribute column) {
    Expression expression = definitions.get(column.exprId());
    while (expression instanceof Attribute renamed) {
      expression = definitions.get(renamed.exprId());
    }
    return expression == null
        ? ""
        : Scala.list(expression.collect(Scala.only(Literal.class))).stream()
            .map(Literal::sql)
            .filter(sql -> !IN_ALL_WINDOWS.contains(sql))
            .distinct()
            .sorted()
            .collect(Collectors.joining(", "));
  }
}

package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandasWithState;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsWithState;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithState;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PassingOperators;
import sparkrowtime.plan.PackedRows;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.Shown;

/**
 * The times by which a query keeps its state, as they were when its checkpoint was created: the sizes and
 * steps of windows, and the expressions that compute a time, from the stream's own time on: the unit of
 * date_trunc, the interval of a shift. Spark's checkpoint does not contain them, and a query that is started
 * again with other ones would mix the old times in its state with new ones. They are in a file beside the
 * offset log, written by the first run that finds none. Beside them are the frames and keys of this library's own state
 * functions, which Spark's checkpoint does not contain either; files of earlier versions have none, and get them. Called
 * once a run, in the query's thread.
 *
 * <p>Law: each operator has a text of its own, in the order of the plan, and a join one for each side.
 */
final class CheckpointedTimes {
  private static final String FILE = "rowtime-times.json";
  private static final String TIMES = "times";
  private static final String FUNCTIONS = "functions";
  private static final String OWN_TIME = "rowtime";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  /** Stands for the own time of a stream. */
  static final String AS_READ = "time";

  private CheckpointedTimes() {}

  /** Returns what writes the file again, if an earlier version wrote it: to be called once nothing refuses this run. */
  static Runnable check(MicroBatchExecution query) {
    LogicalPlan plan = query.logicalPlan();
    Definitions withNames = new Definitions(plan);
    List<String> now = operators(plan).flatMap(node -> in(node, withNames)).toList();
    List<String> functions =
        operators(plan).filter(PackedRows::isStateFunction).map(node -> function(node, withNames)).toList();
    CheckpointFile file = new CheckpointFile(query, FILE);
    boolean isNew = query.commitLog().getLatest().isEmpty();  // there is no state yet
    try {
      String text = MAPPER.writeValueAsString(functions.isEmpty() ? Map.of(TIMES, now) : of(now, functions));
      JsonNode found = MAPPER.readTree(file.first(isNew, text));
      if (found.isArray()) {
        refuseOther(texts(found), inFirstForm(plan), file);
        return () -> file.replace(text);
      }
      refuseOther(texts(found.path(TIMES)), now, file);
      if (found.has(FUNCTIONS)) {
        refuseOther(texts(found.path(FUNCTIONS)), functions, file);
      } else if (!functions.isEmpty()) {
        return () -> file.replace(text);
      }
      return () -> {};
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is not the JSON that a query writes into it.", e);
    }
  }

  private static Map<String, List<String>> of(List<String> times, List<String> functions) {
    Map<String, List<String>> all = new LinkedHashMap<>();
    all.put(TIMES, times);
    all.put(FUNCTIONS, functions);
    return all;
  }

  private static List<String> texts(JsonNode list) throws JsonProcessingException {
    return List.of(MAPPER.treeToValue(list, String[].class));
  }

  /**
   * The text of a column that is not computed in the query: columns beside a stream's own time have their names, in whatever
   * letters the query writes them.
   */
  static String asRead(Attribute column) {
    String name = column.name().toLowerCase(Locale.ROOT);
    return name.equals(OWN_TIME) ? AS_READ : AS_READ + " " + name;
  }

  private static void refuseOther(List<String> before, List<String> now, CheckpointFile file) {
    if (!before.equals(now)) {
      throw new IllegalArgumentException(
          "This query keeps its state by " + shown(now) + ", but its checkpoint was begun with " + shown(before)
              + ": the state has the old ones, and results of both would be mixed. Set the old sizes, keys and"
              + " expressions back, or start with a new checkpoint and a new output. (Of a window its size, its step and its"
              + " start are given, of a session its gap; each operator has its own, and a join one for each side. The file "
              + file + " has them in microseconds.)");
    }
  }

  private static String shown(List<String> times) {
    return times.stream().allMatch(AS_READ::equals) ? "no computed time" : Shown.intervals(times.toString());
  }

  /** The frame of one of the library's state functions, and how the hash of its keys is computed. */
  private static String function(LogicalPlan node, Definitions withNames) {
    Derivations derived = new Derivations(withNames, node, CheckpointedTimes::asRead, false, false);
    String keys = PackedRows.hashes(node)
        .map(column -> String.join(" or ", derived.texts(column, Columns.WHOLE)))
        .collect(Collectors.joining(", "));
    return PackedRows.kept(node) + " by " + keys;
  }

  private static Stream<String> in(LogicalPlan node, Definitions withNames) {
    Derivations derived = new Derivations(withNames, node, CheckpointedTimes::asRead, false, false);
    return keys(node)
        .map(keys -> texts(keys, derived).distinct().sorted().toList())
        .filter(texts -> !texts.isEmpty())
        .map(texts -> texts.stream().filter(text -> !text.equals(AS_READ)).collect(Collectors.joining("; ")))
        .map(text -> text.isEmpty() ? AS_READ : text);
  }

  /** The list that files of the first form have: without the operators and the names of columns. */
  private static List<String> inFirstForm(LogicalPlan plan) {
    Derivations derived = new Derivations(new Definitions(plan), plan, column -> AS_READ, false, true);
    return operators(plan)
        .flatMap(CheckpointedTimes::keys)
        .flatMap(keys -> texts(keys, derived))
        .filter(text -> !text.equals(AS_READ))
        .sorted()
        .toList();
  }

  private static Stream<String> texts(List<Attribute> keys, Derivations derived) {
    return keys.stream()
        .filter(Rowtime::isWatermarked)
        .flatMap(column -> derived.texts(column, Columns.WHOLE).stream());
  }

  private static Stream<LogicalPlan> operators(LogicalPlan plan) {
    return Scala.list(plan.collect(Scala.only(LogicalPlan.class))).stream().filter(LogicalPlan::isStreaming);
  }

  /** The columns by which an operator keeps its rows, in one list; of a join, those of each side in one. */
  private static Stream<List<Attribute>> keys(LogicalPlan node) {
    if (node instanceof Aggregate aggregate) {
      return Stream.of(columns(Scala.list(aggregate.groupingExpressions()).stream()));
    } else if (node instanceof Deduplicate deduplicate) {
      return Stream.of(Scala.list(deduplicate.keys()));
    } else if (PassingOperators.isDistinct(node)) {
      return Stream.of(Scala.list(node.output()));
    } else if (node instanceof Join join && join.left().isStreaming() && join.right().isStreaming()) {
      List<Attribute> compared = columns(Stream.ofNullable(Scala.orNull(join.condition())));
      return Stream.of(join.left(), join.right())
          .map(side -> compared.stream().filter(column -> side.outputSet().contains(column)).toList());
    }
    return keepsByTime(node)
        ? Stream.of(Scala.list(node.children()).stream().flatMap(CheckpointedTimes::output).toList())
        : Stream.of();
  }

  private static List<Attribute> columns(Stream<Expression> expressions) {
    return expressions.flatMap(e -> Scala.list(e.references().toSeq()).stream()).toList();
  }

  /** Operators whose state has times of its input, whatever their columns are. */
  private static boolean keepsByTime(LogicalPlan node) {
    return node instanceof DeduplicateWithinWatermark
        || node instanceof FlatMapGroupsWithState
        || node instanceof FlatMapGroupsInPandasWithState
        || node instanceof TransformWithState
        || node instanceof TransformWithStateInPySpark;
  }

  private static Stream<Attribute> output(LogicalPlan plan) {
    return Scala.list(plan.output()).stream();
  }
}

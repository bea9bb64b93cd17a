package sparkrowtime.query;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.streaming.OutputMode;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.bounds.PlanBounds;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.python.OffsetJson;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * What the bounds of a query's output were derived from when its checkpoint was created: the expression of each
 * output column with a bound, and the conditions on times by which its joins free rows. Spark's checkpoint does
 * not contain them. A query that is started again with other ones could output rows below what an earlier run
 * has promised. They are in a file beside the offset log. Called once a run, in the query's thread.
 *
 * <p>Law: a column that has been promised keeps its derivation, also after a run without it. A new one is added.
 */
final class CheckpointedBounds {
  private static final String FILE = "rowtime-bounds.json";
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() {};
  private static final String JOINS = "the comparisons of times in its joins";
  private static final String COMPUTED_JOINS = "the comparisons of times in its joins by columns of above";
  private static final String NONE = "one without a bound";

  /**
   * Before the names of texts that have the sizes of windows by their roles, the sides of joins and the names of columns.
   * Texts of the first form are under the names alone.
   */
  private static final String SECOND_FORM = "2: ";

  private final LogicalPlan query;
  private final Definitions definitions;
  private final boolean asBefore;
  private final Map<ExprId, String> sources;
  private final Derivations derived;
  private final Map<String, Derivations> ofSources = new TreeMap<>();
  private final Map<String, String> now = new TreeMap<>();

  private CheckpointedBounds(LogicalPlan query, boolean named, boolean asBefore) {
    this.asBefore = asBefore;
    sources = sources(query, named);
    definitions = new Definitions(query);
    this.query = query;
    derived = new Derivations(definitions, query, this::named, true, asBefore);
    if (named) {
      sources.values().forEach(source -> ofSources.computeIfAbsent(source, any -> of(source, query)));
    } else {
      ofSources.put("", derived);
    }
  }

  /** How columns are computed from one source, whatever others there are. */
  private Derivations of(String source, LogicalPlan query) {
    return new Derivations(
        new Definitions(query), query, column -> source.equals(sources.get(column.exprId())) ? time(column) : null, true, asBefore);
  }

  static void check(MicroBatchExecution query) {
    CheckpointFile file = new CheckpointFile(query, FILE);
    Map<String, String> before = read(file, query.offsetLog().getLatest().isEmpty());
    Map<String, String> now = texts(query, false);
    boolean isInFirstForm = before.keySet().stream().anyMatch(what -> !what.startsWith(SECOND_FORM));
    Map<String, String> inFirstForm = isInFirstForm ? texts(query, true) : Map.of();
    Map<String, String> all = new TreeMap<>(before);
    now.forEach(
        (what, text) -> {
          refuseOther(what, before.get(SECOND_FORM + what), text, file);
          refuseOther(what, all.remove(what), inFirstForm.get(what), file);
          if (!text.equals(NONE)) {
            all.put(SECOND_FORM + what, text);
          }
        });
    if (!all.equals(before)) {
      file.replace(OffsetJson.write(all));
    }
  }

  private static Map<String, String> read(CheckpointFile file, boolean isNew) {
    try {
      return MAPPER.readValue(file.first(isNew, "{}"), TEXTS);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(file + " is not the JSON object that a query writes into it.", e);
    }
  }

  private static Map<String, String> texts(MicroBatchExecution query, boolean asBefore) {
    LogicalPlan plan = query.logicalPlan();
    CheckpointedBounds bounds = new CheckpointedBounds(plan, AddedSources.areNamed(query), asBefore);
    if (!query.outputMode().equals(OutputMode.Complete())) {
      bounds.addOutput(plan.children().head(), PlanBounds.possible(plan));
    }
    Scala.list(plan.collect(Scala.only(LogicalPlan.class))).forEach(bounds::addJoin);
    return bounds.now;
  }

  /** @param before null: the file has no such text */
  private static void refuseOther(String what, String before, String now, CheckpointFile file) {
    if (before != null && !sameTime(before).equals(now)) {
      throw new IllegalArgumentException(
          "In this query " + what + ": " + now + ", but its checkpoint was begun with " + before + ". The"
              + " bounds of the output were derived from that, and rows of this query could lie below what was"
              + " promised. Set the expression back, or start with a new checkpoint and a new output. (What the first"
              + " run had is in " + file + ".)");
    }
  }

  /** Runs of earlier versions had {@code now()} where it is the batch's time now. */
  private static String sameTime(String before) {
    return before.replace("now()", "current_timestamp()");
  }

  private void addOutput(LogicalPlan written, PlanBounds bounds) {
    Columns columns = bounds.of(written);
    for (OutputPaths.Path path : OutputPaths.places(Scala.list(written.output()))) {
      Bound bound = columns.get(path.column().exprId(), path.place());
      ofSources.forEach((source, texts) -> add(path, source, bound != null && bound.isPromise() ? texts : null));
    }
  }

  /** @param texts null: the column is not promised */
  private void add(OutputPaths.Path path, String source, Derivations texts) {
    String text = texts == null ? NONE : String.join(" or ", texts.texts(path.column(), path.place()));
    if (!text.isEmpty()) {
      String what = "the time " + path.name() + (source.isEmpty() ? "" : " of source " + source);
      now.merge(what, text, (one, other) -> one + " and " + other);
    }
  }

  /** Spark makes a filter above a join a part of the join's condition. */
  private void addJoin(LogicalPlan node) {
    if (StatefulNodes.isStreamJoin(node)) {
      addConditions(Scala.orNull(((Join) node).condition()), node);
    } else if (node instanceof Filter filter && node.exists(Scala.function(StatefulNodes::isStreamJoin))) {
      addConditions(filter.condition(), node);
    } else if (node instanceof Filter filter && hasJoin(filter.child())) {
      addBelow(filter.condition(), c -> comparesTimes(c) || comparesComputedTimes(c));
    }
  }

  /** Whether there is a join of streams below, maybe behind a name of WITH. */
  private boolean hasJoin(LogicalPlan plan) {
    return plan.exists(
        Scala.function(
            n -> StatefulNodes.isStreamJoin(n) || definitions.body(n) != null && hasJoin(definitions.body(n))));
  }

  private void addConditions(Expression condition, LogicalPlan node) {
    Function<Attribute, String> side = asBefore ? column -> "" : column -> side(column, node);
    now.merge(
        JOINS,
        conditions(condition, CheckpointedBounds::comparesTimes, c -> derived.text(c, side)),
        CheckpointedBounds::and);
    addBelow(condition, this::comparesComputedTimes);
  }

  /** These have a name of their own, since files of earlier versions do not have them. */
  private void addBelow(Expression condition, Predicate<Expression> compares) {
    now.merge(
        COMPUTED_JOINS,
        conditions(condition, compares, c -> derived.textBelow(c, column -> side(column, query))),
        CheckpointedBounds::and);
  }

  private static boolean comparesTimes(Expression condition) {
    return Scala.list(condition.references().toSeq()).stream().filter(Rowtime::isWatermarked).count() > 1;
  }

  private boolean comparesComputedTimes(Expression condition) {
    return !comparesTimes(condition) && derived.times(condition).size() > 1;
  }

  private static String and(String one, String other) {
    return one.isEmpty() || other.isEmpty() ? one + other : one + " AND " + other;
  }

  /** The parts of a condition that compare times in one way. */
  private static String conditions(
      Expression condition, Predicate<Expression> compares, Function<Expression, String> text) {
    return SideEviction.conjuncts(condition).stream()
        .filter(compares)
        .map(text)
        .sorted()
        .collect(Collectors.joining(" AND "));
  }

  /** From which side of the topmost join of streams that has it a column is. */
  private static String side(Attribute column, LogicalPlan node) {
    return Scala.list(node.collect(Scala.only(Join.class))).stream()
        .filter(join -> StatefulNodes.isStreamJoin(join))
        .flatMap(join -> Stream.of(Map.entry("left ", join.left()), Map.entry("right ", join.right())))
        .filter(side -> side.getValue().outputSet().contains(column))
        .map(Map.Entry::getKey)
        .findFirst()
        .orElse("");
  }

  /** By the names of the sources, or by their numbers. */
  private static Map<ExprId, String> sources(LogicalPlan query, boolean named) {
    List<LogicalPlan> leaves =
        Scala.list(query.collectLeaves()).stream().filter(LogicalPlan::isStreaming).toList();
    Map<ExprId, String> sources = new HashMap<>();
    for (int i = 0; i < leaves.size(); i++) {
      RowtimeStream stream = named ? AddedSources.stream(leaves.get(i)) : null;
      String source = stream == null ? Integer.toString(i + 1) : stream.questions().source();
      Scala.list(leaves.get(i).output()).forEach(a -> sources.put(a.exprId(), source));
    }
    return sources;
  }

  private String named(Attribute column) {
    boolean one = sources.values().stream().distinct().count() < 2;
    String source = sources.get(column.exprId());
    return one || source == null ? time(column) : time(column) + " of source " + source;
  }

  private String time(Attribute column) {
    return asBefore ? CheckpointedTimes.AS_READ : CheckpointedTimes.asRead(column);
  }
}

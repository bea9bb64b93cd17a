package sparkrowtime.bounds;

import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import org.apache.spark.sql.execution.streaming.runtime.StreamingExecutionRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import sparkrowtime.plan.PackedRows;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.plan.StatefulNodes;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.InTable;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.TopicBounds;

/**
 * The bounds of the columns of each node of a streaming query. They are computed on the analyzed plan.
 * Unlike the physical plan, it shows every source in every batch, also a source without news, so a bound
 * never depends on what the optimizer leaves out.
 *
 * <p>Called in the query's thread, when a bound has moved (for the watermark nodes) and before each
 * batch (for the output).
 */
public final class PlanBounds {
  private final ToLongFunction<SparkDataStream> floors;
  private final Evictions evicted;
  private final RowsSeen seen;
  private final Definitions definitions;

  /**
   * @param definitions the definitions of WITH in the whole query
   * @param floors the floor of each rowtime stream
   * @param evicted what the stateful operators have evicted
   * @param seen the rows that the operators can have kept
   */
  public PlanBounds(Definitions definitions, ToLongFunction<SparkDataStream> floors, Evictions evicted, RowsSeen seen) {
    this.definitions = definitions;
    this.floors = floors;
    this.evicted = evicted;
    this.seen = seen;
  }

  /** For columns below all operators that keep rows: nothing is known of the columns above such an operator. */
  public PlanBounds(Definitions definitions, ToLongFunction<SparkDataStream> floors) {
    this(definitions, floors, new Evictions(), new RowsSeen(stream -> null));
  }

  /** Which columns of a query can have a bound: those that have one when each stream and each operator has. */
  public static PlanBounds possible(LogicalPlan plan) {
    return possible(new Definitions(plan));
  }

  public static PlanBounds possible(Definitions definitions) {
    return new PlanBounds(definitions, stream -> 0L, Evictions.SOME, new RowsSeen(stream -> null));
  }

  public Columns of(LogicalPlan plan) {
    if (!plan.isStreaming()) {
      return new Columns();
    } else if (plan instanceof WithCTE with) {
      return of(with.plan());
    } else if (definitions.body(plan) != null) {
      return byPlace(plan, List.of(definitions.body(plan)));
    } else if (plan instanceof LeafNode) {
      return ofSource(plan);
    } else if (plan instanceof Project project) {
      return ofList(Scala.list(project.projectList()), of(project.child()), project);
    } else if (plan instanceof Expand expand) {
      return ofExpand(expand);
    } else if (plan instanceof Aggregate aggregate) {
      return ofList(Scala.list(aggregate.aggregateExpressions()), ofGroups(aggregate), aggregate);
    } else if (PassingOperators.isDistinct(plan)) {
      return groups(Scala.list(plan.output()), of(plan.children().apply(0)));
    } else if (plan instanceof Union union) {
      return ofUnion(union);
    } else if (plan instanceof Join join) {
      return ofJoin(join);
    } else if (plan instanceof UpdateEventTimeWatermarkColumn declared) {
      return ofDeclared(declared);
    } else if (InTable.of(plan) != null) {
      return ofTable((Filter) plan);
    }
    return ofOneInput(plan);
  }

  /**
   * The bound of a watermark node's column. When all streams below it are complete no row follows, whatever the
   * column is: the watermark of a time that no bound speaks of ends, too.
   */
  public Bound of(EventTimeWatermark node) {
    return haveEnded(node.child()) ? Bound.of(EndOfTime.WITHIN) : of(node.child()).get(node.eventTime());
  }

  private boolean haveEnded(LogicalPlan plan) {
    return !plan.exists(Scala.function(StatefulNodes::outputsByItself))
        && Scala.list(plan.collectLeaves()).stream().filter(LogicalPlan::isStreaming).allMatch(this::hasEnded);
  }

  private boolean hasEnded(LogicalPlan leaf) {
    return definitions.body(leaf) != null
        ? haveEnded(definitions.body(leaf))
        : bounded(leaf) != null && EndOfTime.isEnd(floors.applyAsLong(bounded(leaf)));
  }

  /** The source of a leaf in the plan of a run, if it has bounds; otherwise null. */
  private static SparkDataStream bounded(LogicalPlan leaf) {
    if (leaf instanceof StreamingDataSourceV2ScanRelation r && r.stream() instanceof RowtimeStream stream) {
      return stream;
    }
    return RowtimeReads.table(leaf);
  }

  /** The operators that pass bounds are a closed list. Any other operator may keep rows, or create times. */
  private Columns ofOneInput(LogicalPlan plan) {
    LogicalPlan input = onlyStream(plan);
    if (input == null) {
      return new Columns();
    }
    Columns columns = of(input);
    return PassingOperators.has(plan) ? columns : ofFollowing(plan, input, columns);
  }

  /**
   * The columns that an operator of this library creates follow a column of its input. A state function
   * has output all rows below the floor that it was given, and no others.
   */
  private Columns ofFollowing(LogicalPlan plan, LogicalPlan input, Columns below) {
    Columns columns = new Columns();
    for (Attribute a : Scala.list(plan.output())) {
      Attribute followed = input.outputSet().contains(a) ? null : PackedRows.followed(a, plan);
      if (followed != null) {
        Bound bound = below.get(followed);
        columns.put(a.exprId(), Columns.WHOLE, plan instanceof TransformWithStateInPySpark ? given(bound) : bound);
      }
    }
    return columns;
  }

  /**
   * The event time that a user's transformWithState declares for its output. Spark fails a batch in which one
   * of these times is not above the watermark of the batch before, so later ones are above that of this batch.
   */
  private Columns ofDeclared(UpdateEventTimeWatermarkColumn declared) {
    LogicalPlan input = StatefulNodes.input(declared.child());
    Bound bound = input == null ? null : weakestTime(input);
    Long above = evicted.ofEmitted(declared.eventTime());
    Columns columns = new Columns();
    if (bound != null) {
      long floor = above == null ? Bound.UNKNOWN_YET : above + 1;
      columns.put(declared.eventTime().exprId(), Columns.WHOLE, bound.weakest(Bound.of(floor)));
    }
    return columns;
  }

  /** The weakest bound of the columns with a watermark; null if there is none, or one of them has no bound. */
  private Bound weakestTime(LogicalPlan input) {
    Columns columns = of(input);
    List<Attribute> times = Scala.list(input.output()).stream().filter(Rowtime::isWatermarked).toList();
    boolean known = !times.isEmpty() && times.stream().allMatch(a -> time(columns, a) != null);
    return known ? times.stream().map(a -> time(columns, a)).reduce(Bound::weakest).get() : null;
  }

  private static Bound time(Columns columns, Attribute a) {
    return columns.get(a.exprId(), a.dataType() instanceof StructType ? Columns.END : Columns.WHOLE);
  }

  private Bound given(Bound bound) {
    return bound == null || evicted.followed() == null ? null : bound.weakest(Bound.of(evicted.followed()));
  }

  /** The only streaming input; null if there are several. A state function also has an initial state, a table. */
  private static LogicalPlan onlyStream(LogicalPlan plan) {
    List<LogicalPlan> streams = Scala.list(plan.children()).stream().filter(c -> c.isStreaming()).toList();
    return streams.size() == 1 ? streams.get(0) : null;
  }

  private Columns ofSource(LogicalPlan source) {
    Columns columns = new Columns();
    for (Attribute a : Scala.list(source.output())) {
      if (RowtimeReads.isRowtime(source)) {
        // At analysis no floor is known. Any floor shows which columns can have a bound.
        columns.put(a.exprId(), Columns.WHOLE, Rowtime.isRowtime(a) ? Bound.of(0L) : null);
      } else if (!(source instanceof StreamingDataSourceV2ScanRelation r && r.stream() instanceof RowtimeStream s)) {
        columns.put(a.exprId(), Columns.WHOLE, isSource(source) ? Bound.ORDINARY : null);
      } else if (s.isOfLateRows()) {
        columns.put(a.exprId(), Columns.WHOLE, ofLateRows(a, floors.applyAsLong(s)));
      } else if (Rowtime.isRowtime(a)) {
        columns.put(a.exprId(), Columns.WHOLE, new Bound(floors.applyAsLong(s), false, s.punctuates()));
      }
    }
    return columns;
  }

  /** Late rows may have any time, like those of an ordinary source, until no row follows. */
  private static Bound ofLateRows(Attribute a, long floor) {
    if (!EndOfTime.isEnd(floor)) {
      return Bound.ORDINARY;
    }
    return a.dataType() instanceof TimestampType ? Bound.of(floor) : null;
  }

  /** The time of the filter of a table's late rows has the bound of the table. At analysis any floor will do. */
  private Columns ofTable(Filter filter) {
    Columns columns = of(filter.child());
    SparkDataStream table = bounded(TopicBounds.leaf(filter.child()));
    if (LateMark.time(filter.condition()) instanceof Attribute time) {
      columns.put(time.exprId(), Columns.WHOLE, Bound.of(table == null ? 0L : floors.applyAsLong(table)));
    }
    return columns;
  }

  private static boolean isSource(LogicalPlan leaf) {
    return leaf instanceof StreamingDataSourceV2ScanRelation || leaf instanceof StreamingExecutionRelation;
  }

  private static Columns ofList(List<NamedExpression> list, Columns input, UnaryNode node) {
    Columns columns = new Columns();
    list.forEach(e -> put(columns, e.exprId(), (Expression) e, input));
    return ended(columns, input, node);
  }

  /** The columns of a node, at the end of time if no row of its input follows. */
  private static Columns ended(Columns columns, Columns input, UnaryNode node) {
    if (input.haveEnded(Scala.list(node.child().output()))) {
      columns.end();
    }
    return columns;
  }

  private static void put(Columns columns, ExprId id, Expression e, Columns input) {
    ExprBounds bounds = new ExprBounds(input);
    if (e.dataType() instanceof StructType type) {
      places(type).forEach(place -> columns.put(id, place, bounds.of(e, place)));
    } else if (e.dataType() instanceof TimestampType || e instanceof Attribute || bounds.of(e) == Bound.ORDINARY) {
      columns.put(id, Columns.WHOLE, bounds.of(e));
    }
  }

  /** The places in a struct, of structs inside it, too. */
  private static Stream<List<Integer>> places(StructType type) {
    return IntStream.range(0, type.length()).boxed().flatMap(i -> places(i, type.apply(i).dataType()));
  }

  private static Stream<List<Integer>> places(int field, DataType type) {
    return type instanceof StructType inner
        ? places(inner).map(place -> ExprBounds.within(field, place))
        : Stream.of(List.of(field));
  }

  /** A sliding window puts every row into several windows. The earliest of them counts. */
  private Columns ofExpand(Expand expand) {
    Columns input = of(expand.child());
    List<Attribute> output = Scala.list(expand.output());
    Columns all = null;
    for (scala.collection.immutable.Seq<Expression> projection : Scala.list(expand.projections())) {
      Columns one = new Columns();
      for (int i = 0; i < output.size(); i++) {
        put(one, output.get(i).exprId(), projection.apply(i), input);
      }
      all = all == null ? one : weakest(output, all, output, one, output);
    }
    return ended(all, input, expand);
  }

  /** Of a topic and the bounds beside it, the bounds alone count: nothing is taken from the rows. */
  private Columns ofUnion(Union union) {
    LogicalPlan bounds = TopicBounds.branch(union);
    if (bounds == null) {
      return byPlace(union, Scala.list(union.children()));
    }
    Columns columns = byPlace(union, List.of(TopicBounds.rows(union, bounds)));
    columns.putAll(byPlace(union, List.of(bounds)));
    return columns;
  }

  /** For a union, or a name of WITH: its columns are those of its parts, in the same order. */
  private Columns byPlace(LogicalPlan plan, List<LogicalPlan> parts) {
    List<Attribute> output = Scala.list(plan.output());
    Columns all = null;
    for (LogicalPlan part : parts) {
      List<Attribute> own = Scala.list(part.output());
      Columns one = of(part);
      all = weakest(output, all == null ? one : all, all == null ? own : output, one, own);
    }
    return all;
  }

  private static Columns weakest(
      List<Attribute> to, Columns one, List<Attribute> a, Columns two, List<Attribute> b) {
    Columns columns = new Columns();
    for (int i = 0; i < to.size(); i++) {
      columns.merge(to.get(i), one, a.get(i), two, b.get(i), Bound::weakest);
    }
    return columns;
  }

  private Columns ofGroups(Aggregate aggregate) {
    return groups(Scala.list(aggregate.groupingExpressions()), of(aggregate.child()));
  }

  private Columns groups(List<? extends Expression> by, Columns input) {
    Columns groups = new Columns();
    for (Expression e : by) {
      if (e instanceof Attribute a) {
        keep(groups, a, input, above(evicted.ofGroups(a)), false);
      }
    }
    return groups;
  }

  /** A join of two streams also outputs rows that it has kept. A join with a table outputs only new rows. */
  private Columns ofJoin(Join join) {
    Columns columns = new Columns();
    if (join.left().isStreaming() && join.right().isStreaming()) {
      columns.putAll(kept(join.left()));
      columns.putAll(kept(join.right()));
    } else {
      columns.putAll(of(join.left()));
      columns.putAll(of(join.right()));
    }
    return columns;
  }

  private Columns kept(LogicalPlan side) {
    Columns input = of(side);
    Columns columns = new Columns();
    Scala.list(side.output())
        .forEach(a -> keep(columns, a, input, leastKept(side, a), true));
    return columns;
  }

  /** No row in a join's state is below what was evicted, and each was sent by a stream. */
  private Long leastKept(LogicalPlan side, Attribute a) {
    Long least = above(evicted.ofJoins(a));
    return least == null ? null : (Long) seen.least(side, a, least).orElse(least);
  }

  private static Long above(Long evicted) {
    return evicted == null ? null : (Long) (evicted + 1);
  }

  /**
   * Sets the bound of a column by which rows are kept in state. {@code alsoNew}: new rows pass in the same
   * batch, so their bound counts, too.
   */
  private static void keep(
      Columns columns, Attribute a, Columns input, Long least, boolean alsoNew) {
    if (least == null) {
      return;
    }
    if (!(a.dataType() instanceof StructType)) {
      columns.put(a.exprId(), Columns.WHOLE, with(Bound.of(least), input.get(a), alsoNew));
      return;
    }
    Bound start = input.get(a.exprId(), Columns.START);
    Bound end = input.get(a.exprId(), Columns.END);
    columns.put(a.exprId(), Columns.END, with(Bound.of(least), end, alsoNew));
    if (WindowBounds.isFixedSize(a) && start != null && end != null && end.isKnown()) {
      long size = end.floor() - start.floor();
      columns.put(a.exprId(), Columns.START, with(Bound.of(least - size), start, alsoNew));
    }
  }

  private static Bound with(Bound old, Bound fresh, boolean alsoNew) {
    return !alsoNew ? old : fresh == null ? null : old.weakest(fresh);
  }
}

package sparkrowtime.analysis;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import sparkrowtime.compat.SourceNames;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.topics.InTime;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.TopicBounds;

/**
 * The union of a topic with the bounds beside it, as {@code punctuate} writes it, becomes: the union, an automatic
 * watermark node on its time, the filter that takes the late rows, and a projection to the columns that the user sees.
 * The topic's own columns topic, partition and offset are handed up to the filter. The watermark node is below the
 * filter, since Spark would move a filter into the projection that parses the messages, and parse them twice.
 *
 * <p>Law: the rewriting is idempotent; the relation of the bounds then has an id.
 */
final class TopicUnion {
  static final List<String> PLACE = List.of("topic", "partition", "offset");

  private static final String KAFKA = "kafka";

  /** What follows the name of a topic's source in that of the stream of bounds beside it. */
  private static final String NAME_SUFFIX = "_bounds";

  private final Union union;
  private final StreamingRelationV2 bounds;
  private final LogicalPlan rows;

  private TopicUnion(Union union, StreamingRelationV2 bounds, LogicalPlan rows) {
    this.union = union;
    this.bounds = bounds;
    this.rows = rows;
  }

  static LogicalPlan rewritten(Union union) {
    LogicalPlan branch = union.resolved() ? TopicBounds.branch(union) : null;
    boolean isNew =
        branch != null
            && TopicBounds.leaf(branch) instanceof StreamingRelationV2 relation
            && !relation.extraOptions().containsKey(RowtimeStream.UNION_ID);
    LogicalPlan rows = isNew ? TopicBounds.rows(union, branch) : null;
    StreamingRelationV2 topic = rows == null ? null : topic(rows);
    return topic == null
        ? union
        : new TopicUnion(union, (StreamingRelationV2) TopicBounds.leaf(branch), rows).over(branch, topic);
  }

  /** The relation of the topic, if the operators above it keep the offset of each row; otherwise null. */
  static StreamingRelationV2 topic(LogicalPlan plan) {
    return TopicBounds.leaf(plan) instanceof StreamingRelationV2 relation && relation.sourceName().equalsIgnoreCase(KAFKA)
        ? relation
        : null;
  }

  private LogicalPlan over(LogicalPlan branch, StreamingRelationV2 topic) {
    String id = UUID.randomUUID().toString();
    List<Attribute> hidden = hidden(topic);
    LogicalPlan marked = marked(branch, id, topic);
    List<NamedExpression> columns = new ArrayList<>(Scala.list(marked.output()));
    hidden.forEach(a -> columns.add(none(a)));
    List<NamedExpression> all = new ArrayList<>(Scala.list(rows.output()));
    all.addAll(hidden);
    Union wide =
        (Union)
            AutoWatermark.with(
                union, List.of(new Project(Scala.seq(columns), marked), new Project(Scala.seq(all), keeping(rows, hidden))));
    List<Attribute> out = Scala.list(wide.output());
    Attribute time = out.get(place(bounds.extraOptions().get(TopicBounds.OPTION)));
    LogicalPlan watched = AutoWatermark.on(time, wide);
    Filter filter = new Filter(inTime(id, Scala.list(watched.output())), watched);
    List<NamedExpression> seen = new ArrayList<>(Scala.list(filter.output()).subList(0, rows.output().size()));
    return new Project(Scala.seq(seen), filter);
  }

  private int place(String time) {
    return names(Scala.list(rows.output())).indexOf(time);
  }

  private static List<String> names(List<Attribute> columns) {
    return columns.stream().map(Attribute::name).toList();
  }

  /** The columns of the topic that say where a row lies, and those that the stream of bounds keeps of a late row. */
  private List<Attribute> hidden(StreamingRelationV2 topic) {
    List<Attribute> kept = Scala.list(bounds.output()).stream().map(a -> (Attribute) a).toList();
    List<Attribute> shown = Scala.list(rows.output());
    List<String> found = names(Scala.list(topic.output()).stream().map(a -> (Attribute) a).toList());
    if (!found.containsAll(PLACE)) {
      throw new ShimMismatch("the columns " + PLACE + " of Spark's Kafka source, which has " + found, null);
    }
    return Scala.list(topic.output()).stream()
        .map(a -> (Attribute) a)
        .filter(a -> PLACE.contains(a.name()) || isIn(kept, a) && !isIn(shown, a))
        .toList();
  }

  /** Whether a column is among these by its name and its type. */
  private static boolean isIn(List<Attribute> columns, Attribute column) {
    return columns.stream().anyMatch(c -> isSame(c, column));
  }

  private static boolean isSame(Attribute one, Attribute other) {
    return one.name().equals(other.name()) && one.dataType().sameType(other.dataType());
  }

  private static Alias none(Attribute column) {
    return new Alias(
        Literal.create(null, column.dataType()), column.name(), NamedExpression.newExprId(), Scala.seq(List.of()),
        Option.empty(), Scala.seq(List.of()));
  }

  /**
   * The branch of the bounds, whose relation has the id and, if its bounds are derived, says from which topic. Where
   * sources have names, it has that of the topic with {@value #NAME_SUFFIX} behind it: so a checkpoint knows both again.
   */
  private LogicalPlan marked(LogicalPlan branch, String id, StreamingRelationV2 topic) {
    StreamingRelationV2 relation = withId(id, topic);
    return branch.transformUp(Scala.rewriting(node -> node == bounds || node.fastEquals(bounds) ? relation : node));
  }

  private StreamingRelationV2 withId(String id, StreamingRelationV2 topic) {
    Map<String, String> options = new HashMap<>(bounds.extraOptions().asCaseSensitiveMap());
    options.put(RowtimeStream.UNION_ID, id);
    if (options.containsKey(WatchedTopic.OPTION)) {
      Attribute time = Scala.list(rows.output()).get(place(bounds.extraOptions().get(TopicBounds.OPTION)));
      options.put(RowtimeStream.WATCHED, new WatchedTopic(rows, topic).described(time));
    }
    StreamingRelationV2 described =
        Scala.copy(bounds, CaseInsensitiveStringMap.class, new CaseInsensitiveStringMap(options));
    return SourceNames.ofTopic(described, topic, NAME_SUFFIX);
  }

  /** The plan of the rows in which each projection also has the hidden columns. */
  private static LogicalPlan keeping(LogicalPlan plan, List<Attribute> hidden) {
    if (plan instanceof StreamingRelationV2) {
      return plan;
    }
    LogicalPlan below = AutoWatermark.with(plan, List.of(keeping(plan.children().apply(0), hidden)));
    if (!(below instanceof Project project)) {
      return below instanceof SubqueryAlias || below instanceof View ? below.children().apply(0) : below;
    }
    List<NamedExpression> columns = new ArrayList<>(Scala.list(project.projectList()));
    hidden.stream().filter(a -> !project.outputSet().contains(a)).forEach(columns::add);
    return new Project(Scala.seq(columns), project.child());
  }

  private Invoke inTime(String id, List<Attribute> columns) {
    int shown = rows.output().size();
    List<Attribute> hidden = columns.subList(shown, columns.size());
    Attribute time = columns.get(place(bounds.extraOptions().get(TopicBounds.OPTION)));
    List<Expression> arguments = new ArrayList<>(List.of(time));
    PLACE.forEach(name -> arguments.add(hidden.get(names(hidden).indexOf(name))));
    List<Attribute> kept = Scala.list(bounds.output()).stream().map(a -> (Attribute) a).toList();
    arguments.add(row(kept, time, columns));
    InTime mark = new InTime(id, schema(kept));
    return new Invoke(
        new Literal(mark, new ObjectType(InTime.class)), LateMark.METHOD, DataTypes.BooleanType, Scala.seq(arguments),
        Scala.seq(List.of()), false, false, false);
  }

  /** A late row with the columns of the stream of bounds: by name, with the same type, otherwise NULL. */
  private static CreateNamedStruct row(List<Attribute> kept, Attribute time, List<Attribute> columns) {
    return new CreateNamedStruct(
        Scala.seq(kept.stream().flatMap(a -> Stream.of(Literal.create(a.name(), DataTypes.StringType), value(a, time, columns))).toList()));
  }

  private static Expression value(Attribute kept, Attribute time, List<Attribute> columns) {
    return Rowtime.isRowtime(kept)
        ? time
        : columns.stream()
            .filter(c -> isSame(c, kept))
            .findFirst()
            .map(c -> (Expression) c)
            .orElse(Literal.create(null, kept.dataType()));
  }

  private static StructType schema(List<Attribute> kept) {
    return new StructType(
        kept.stream()
            .map(a -> new StructField(a.name(), a.dataType(), true, a.metadata()))
            .toArray(StructField[]::new));
  }
}

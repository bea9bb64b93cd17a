package sparkrowtime.analysis;

import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.DateTimeConstants;
import org.apache.spark.sql.catalyst.util.IntervalUtils;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.ObjectType;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Tuple3;
import scala.collection.immutable.Seq;
import sparkrowtime.bounds.Origin;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.Declared;
import sparkrowtime.tables.IcebergLog;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.TopicBounds;

/**
 * Streaming reads of Delta and Iceberg tables whose commits have bounds. {@code punctuate} of the Python side writes a filter {@code
 * rowtime_in_time(ts, 'delta:PATH')}, a function of this extension, so without the extension the filter is refused. The
 * relation below becomes one with a bounded source, and above the filter comes an automatic watermark node.
 *
 * <p>Law: the rewriting is idempotent; the filter then has an id.
 */
public final class TableReads {
  private static final String FUNCTION = "rowtime_in_time";
  private static final int LATENESS = 3;
  private static final int DELAY = 4;

  private TableReads() {}

  /** The function, for {@code SparkSessionExtensions.injectFunction}. */
  public static Tuple3<FunctionIdentifier, ExpressionInfo, Function1<Seq<Expression>, Expression>> function() {
    ExpressionInfo info = new ExpressionInfo(TableReads.class.getName(), FUNCTION);
    return new Tuple3<>(new FunctionIdentifier(FUNCTION), info, Scala.function(TableReads::call));
  }

  private static Expression call(Seq<Expression> arguments) {
    if (arguments.isEmpty() || arguments.size() > 5) {
      throw wrong("it has " + arguments.size() + " arguments");
    }
    return call(new InTable(table(arguments, 1), table(arguments, 2), declared(arguments)), List.of(arguments.head()));
  }

  /** The name of a table; null where it is not said. */
  private static TableName table(Seq<Expression> arguments, int place) {
    Expression said = said(arguments, place);
    TableName name = said instanceof Literal text ? TableName.of(text.value().toString()) : null;
    if (said != null && name == null) {
      throw wrong("argument " + (place + 1) + " is " + said.sql());
    }
    return name;
  }

  /** An argument; null where it is left out or NULL. */
  private static Expression said(Seq<Expression> arguments, int place) {
    Expression said = arguments.size() > place ? arguments.apply(place) : null;
    return said instanceof Literal literal && literal.value() == null ? null : said;
  }

  private static Declared declared(Seq<Expression> arguments) {
    return Declared.of(interval(arguments, LATENESS), interval(arguments, DELAY));
  }

  /** The microseconds of an interval; null where none is said. */
  private static Long interval(Seq<Expression> arguments, int place) {
    Expression said = said(arguments, place);
    if (said == null) {
      return null;
    }
    CalendarInterval interval = said instanceof Literal text && text.value() instanceof UTF8String value
        ? IntervalUtils.safeStringToInterval(value)
        : null;
    if (interval == null || interval.months != 0 || interval.days < 0 || interval.microseconds < 0) {
      throw wrong("argument " + (place + 1) + " is " + said.sql() + ", and no interval such as '1 hour' or '2 days'");
    }
    return Math.addExact(Math.multiplyExact(interval.days, DateTimeConstants.MICROS_PER_DAY), interval.microseconds);
  }

  private static IllegalArgumentException wrong(String what) {
    return new IllegalArgumentException(
        FUNCTION + " is for a time, the table of the rows, a table that keeps late rows, how far a row may lie below the largest"
            + " one, and how long after its time it may be committed. The last four may be left out or NULL: " + FUNCTION
            + "(ts, 'delta:/lake/orders', 'delta:/lake/late', '1 hour', '5 minutes'), or 'iceberg:prod.shop.orders'. Here " + what
            + ".");
  }

  private static Invoke call(InTable mark, List<Expression> arguments) {
    return new Invoke(
        new Literal(mark, new ObjectType(InTable.class)), LateMark.METHOD, DataTypes.BooleanType, Scala.seq(arguments),
        Scala.seq(List.of()), false, false, false);
  }

  /** Whether an expression calls the function. */
  static boolean isMarked(Expression e) {
    return e.exists(part -> LateMark.of(part) != null);
  }

  /** Whether a filter is by the function and by other conditions. */
  static boolean isJoined(Object node) {
    return node instanceof Filter filter && filter.condition() instanceof And both && isMarked(both) && filter.resolved();
  }

  /** Such a filter as two of them: the function is about the rows that the other conditions leave. */
  static LogicalPlan alone(Filter joined) {
    And both = (And) joined.condition();
    boolean isLast = isMarked(both.right());
    Filter others = new Filter(isLast ? both.left() : both.right(), joined.child());
    Filter marked = new Filter(isLast ? both.right() : both.left(), isJoined(others) ? alone(others) : others);
    return isJoined(marked) ? alone(marked) : marked;
  }

  /** The filter over a relation with bounds, below its watermark node; the filter itself where there is no such relation. */
  static LogicalPlan bounded(Filter filter, BoundedSources sources) {
    LogicalPlan table = filter.resolved() && InTable.of(filter).id() == null ? table(filter.child()) : null;
    if (table == null || !(LateMark.time(filter.condition()) instanceof Attribute time)) {
      return filter;
    }
    InTable mark = InTable.of(filter).of(UUID.randomUUID().toString(), column(time, filter.child()), filter.child().schema());
    LogicalPlan bounded = bounded(table, mark, sources);
    LogicalPlan rows = filter.child().transformUp(Scala.rewriting(node -> node == table ? bounded : node));
    List<Expression> arguments = mark.keeps() ? List.of(time, row(Scala.list(filter.child().output()))) : List.of(time);
    return AutoWatermark.on(time, new Filter(call(mark, arguments), rows));
  }

  private static LogicalPlan bounded(LogicalPlan table, InTable mark, BoundedSources sources) {
    if (table instanceof StreamingRelation delta) {
      return Scala.copy(delta, DataSource.class, sources.ofDelta(delta.dataSource(), mark));
    }
    StreamingRelationV2 iceberg = (StreamingRelationV2) table;
    return Scala.copy(iceberg, Table.class, sources.ofIceberg(iceberg.table(), mark));
  }

  private static String column(Expression e, LogicalPlan rows) {
    List<String> names = names(e, rows);
    return names == null ? null : String.join(".", names);
  }

  /**
   * The column of the relation, or the path of the field of a struct, that an expression is, with the names that the table has,
   * not as the user writes them; null if it computes anything.
   */
  static List<String> names(Expression e, LogicalPlan rows) {
    if (e instanceof Attribute attribute) {
      Alias alias = Origin.alias(attribute, rows);
      return alias == null ? List.of(ofTable(attribute, rows)) : names(alias.child(), rows);
    } else if (e instanceof GetStructField field) {
      List<String> struct = names(field.child(), rows);
      String name = field.childSchema().apply(field.ordinal()).name();
      return struct == null ? null : Stream.concat(struct.stream(), Stream.of(name)).toList();
    }
    return e instanceof Cast cast && cast.child().dataType().equals(cast.dataType()) ? names(cast.child(), rows) : null;
  }

  private static String ofTable(Attribute column, LogicalPlan rows) {
    return Scala.list(TopicBounds.leaf(rows).output()).stream()
        .filter(a -> a.exprId().equals(column.exprId()))
        .findFirst()
        .orElse(column)
        .name();
  }

  private static Expression row(List<Attribute> columns) {
    Stream<Expression> named = columns.stream().flatMap(a -> Stream.of(Literal.create(a.name(), DataTypes.StringType), a));
    return new CreateNamedStruct(Scala.seq(named.toList()));
  }

  /** The relation of a table that can have bounds, if only operators that keep rows as they are are above it; else null. */
  private static LogicalPlan table(LogicalPlan rows) {
    LogicalPlan leaf = TopicBounds.leaf(rows);
    boolean isDelta = leaf instanceof StreamingRelation relation && relation.sourceName().equalsIgnoreCase(TableName.DELTA);
    boolean isIceberg = leaf instanceof StreamingRelationV2 relation && IcebergLog.isOfSpark(relation.table());
    return isDelta || isIceberg ? leaf : null;
  }
}

package sparkrowtime.analysis;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.plan.PackedRows;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The plan of the operator {@code asofJoin} for an ASOF JOIN, as Python's {@code asofJoin} makes it: both sides packed,
 * united, kept by a state function, and unpacked. The columns have names of their own in it.
 */
final class AsOfOperator {
  private static final String TIME = "time";

  /** How the names of the columns of a side begin that are neither its time nor its keys. */
  static final List<String> SIDES = List.of("left ", "right ");

  static final String ADDED = "added";

  private final SparkSession session;
  private final AsOfJoin join;
  private final AsOfForm form;
  private final Map<String, Expression> left = new LinkedHashMap<>();
  private final Map<String, Expression> right = new LinkedHashMap<>();
  private final List<String> keys;

  AsOfOperator(SparkSession session, AsOfJoin join) {
    this.session = session;
    this.join = join;
    this.form = new AsOfForm(join);
    this.keys = IntStream.range(0, form.leftKeys().size()).mapToObj(i -> "key" + i).toList();
    left.put(TIME, form.leftTime());
    right.put(TIME, form.rightTime());
    for (int i = 0; i < keys.size(); i++) {
      left.put(keys.get(i), form.leftKeys().get(i));
      right.put(keys.get(i), form.rightKeys().get(i));
    }
    for (Attribute column : Scala.list(join.left().output())) {
      if (left.values().stream().noneMatch(there -> there.semanticEquals(column))) {
        left.put(named(SIDES.get(0), column, left), column);
      }
    }
    Scala.list(join.right().output()).forEach(column -> right.put(named(SIDES.get(1), column, right), column));
  }

  /** A name that a changed query gives to the same column alone, since the state has the rows by it. */
  private static String named(String side, Attribute column, Map<String, Expression> there) {
    String name = side + column.name();
    return there.containsKey(name) ? name + " " + there.size() : name;
  }

  LogicalPlan plan() {
    StructType chunk = new StructType(new StructField[] {chunk(PackedRows.CHUNK)});
    Dataset<Row> both = packed(join.left(), left, form.isInner(), 0).union(packed(join.right(), right, true, 1));
    Dataset<Row> joined = both.groupBy(functions.col(PackedRows.BUCKET)).transformWithStateInPandas(
        call(both, AsOfFunction.JOINED, chunk, arguments()), chunk, "Append", "EventTime", null, "");
    return mapped(joined, AsOfFunction.UNPACKED, output(), AsOfFunction.noArguments()).queryExecution().analyzed();
  }

  /** The column of the plan that takes the place of a column of the join. */
  Attribute of(Attribute column, LogicalPlan plan) {
    List<Attribute> found = Scala.list(plan.output());
    List<Map.Entry<String, Expression>> all =
        Stream.concat(left.entrySet().stream(), added().entrySet().stream()).toList();
    int at = IntStream.range(0, all.size())
        .filter(i -> all.get(i).getValue() instanceof Attribute a && a.exprId().equals(column.exprId()))
        .findFirst()
        .getAsInt();
    return found.get(at);
  }

  private ObjectNode arguments() {
    ObjectNode arguments = AsOfFunction.noArguments().put("inner", form.isInner()).put(ADDED, addedType().json());
    keys.forEach(arguments.putArray("keys")::add);
    return arguments;
  }

  private Map<String, Expression> added() {
    Map<String, Expression> added = new LinkedHashMap<>(right);
    added.keySet().removeIf(name -> name.equals(TIME) || keys.contains(name));
    return added;
  }

  private StructType addedType() {
    return new StructType(added().entrySet().stream()
        .map(e -> new StructField(e.getKey(), e.getValue().dataType(), true, Metadata.empty()))
        .toArray(StructField[]::new));
  }

  private StructType output() {
    List<StructField> fields = new ArrayList<>();
    left.forEach((name, e) -> fields.add(new StructField(name, e.dataType(), e.nullable(), following(name))));
    fields.addAll(List.of(addedType().fields()));
    return new StructType(fields.toArray(StructField[]::new));
  }

  private Metadata following(String name) {
    return name.equals(TIME)
        ? new MetadataBuilder()
            .withMetadata(form.leftTime().metadata())
            .putString(Rowtime.FOLLOWS, PackedRows.CHUNK)
            .build()
        : Metadata.empty();
  }

  /** The rows of a side as chunks; of a side whose rows have to match only those without a null in time and keys. */
  private Dataset<Row> packed(LogicalPlan side, Map<String, Expression> columns, boolean matching, int number) {
    Dataset<Row> rows = Dataset.ofRows(session, side).select(columns.entrySet().stream()
        .map(e -> ExpressionUtils.column(e.getValue()).as(e.getKey()))
        .toArray(Column[]::new));
    for (String name : Stream.concat(Stream.of(TIME), keys.stream()).toList()) {
      rows = matching ? rows.where(functions.col(name).isNotNull()) : rows;
    }
    Column[] of = keys.stream().map(functions::col).toArray(Column[]::new);
    Column hash = of.length == 0 ? functions.lit(0L) : functions.xxhash64(Scala.seq(List.of(of)));
    StructType packed = new StructType()
        .add(PackedRows.BUCKET, DataTypes.IntegerType, false)
        .add("side", DataTypes.IntegerType, false)
        .add("place", DataTypes.LongType, false)
        .add(chunk(TIME));
    ObjectNode arguments = AsOfFunction.noArguments().put("side", number);
    return mapped(rows.withColumn(PackedRows.KEY_HASH, hash), AsOfFunction.PACKED, packed, arguments);
  }

  private static StructField chunk(String followed) {
    Metadata follows = new MetadataBuilder().putString(Rowtime.FOLLOWS, followed).build();
    return new StructField(PackedRows.CHUNK, DataTypes.BinaryType, false, follows);
  }

  private Dataset<Row> mapped(Dataset<Row> rows, AsOfFunction function, StructType type, ObjectNode arguments) {
    return rows.mapInArrow(call(rows, function, type, arguments), false, null);
  }

  private Column call(Dataset<Row> rows, AsOfFunction function, StructType type, ObjectNode arguments) {
    List<Attribute> columns = Scala.list(rows.queryExecution().analyzed().output());
    return ExpressionUtils.column(function.of(session, type, arguments, columns));
  }
}

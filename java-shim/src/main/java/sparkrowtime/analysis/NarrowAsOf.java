package sparkrowtime.analysis;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import sparkrowtime.support.Scala;

/**
 * The plan of {@link AsOfOperator} with fewer columns: they are neither packed nor kept, and do not come out. Law: the
 * others have the ids that they had, and the same values.
 */
final class NarrowAsOf {
  private NarrowAsOf() {}

  /** Whether this is the last node of such a plan. */
  static boolean isEndOf(LogicalPlan node) {
    return AsOfFunction.UNPACKED.arguments(node) != null;
  }

  /** Whether the operator itself does not need a column of its plan. */
  static boolean mayBeLeftOut(Attribute column) {
    return isOfSide(column.name());
  }

  /** The plan with the last node {@code end} and these of its columns alone. */
  static LogicalPlan of(LogicalPlan end, List<Attribute> kept) {
    Set<String> names = kept.stream().map(Attribute::name).collect(Collectors.toSet());
    LogicalPlan keeps = keeping(end.children().apply(0), names);
    PythonUDF made = AsOfFunction.called(end);
    PythonUDF unpacked = AsOfFunction.UNPACKED.instead(
        made, only((StructType) made.dataType(), names), AsOfFunction.noArguments(), Scala.list(keeps.output()));
    return Scala.copy(Scala.copy(end, Expression.class, unpacked), Seq.class, Scala.seq(kept))
        .withNewChildren(Scala.seq(List.of(keeps)));
  }

  private static LogicalPlan keeping(LogicalPlan state, Set<String> names) {
    ObjectNode arguments = AsOfFunction.JOINED.arguments(state);
    StructType added = (StructType) DataType.fromJson(arguments.get(AsOfOperator.ADDED).textValue());
    PythonUDF made = AsOfFunction.called(state);
    LogicalPlan input = packing(state.children().apply(0), names);
    PythonUDF joined = AsOfFunction.JOINED.instead(
        made, made.dataType(), arguments.put(AsOfOperator.ADDED, only(added, names).json()), Scala.list(input.output()));
    List<LogicalPlan> children = new ArrayList<>(Scala.list(state.children()));
    children.set(0, input);
    return Scala.copy(state, Expression.class, joined).withNewChildren(Scala.seq(children));
  }

  private static LogicalPlan packing(LogicalPlan node, Set<String> names) {
    ObjectNode arguments = AsOfFunction.PACKED.arguments(node);
    if (arguments == null) {
      return node.withNewChildren(
          Scala.seq(Scala.list(node.children()).stream().map(child -> packing(child, names)).toList()));
    }
    LogicalPlan rows = node.children().apply(0);
    List<Attribute> kept = Scala.list(rows.output()).stream()
        .filter(column -> !mayBeLeftOut(column) || names.contains(column.name()))
        .toList();
    PythonUDF made = AsOfFunction.called(node);
    PythonUDF packed = AsOfFunction.PACKED.instead(made, made.dataType(), arguments, kept);
    List<NamedExpression> columns = new ArrayList<>(kept);
    return Scala.copy(node, Expression.class, packed)
        .withNewChildren(Scala.seq(List.of(new Project(Scala.seq(columns), rows))));
  }

  private static boolean isOfSide(String name) {
    return AsOfOperator.SIDES.stream().anyMatch(name::startsWith);
  }

  private static StructType only(StructType type, Set<String> names) {
    return new StructType(
        Stream.of(type.fields()).filter(f -> names.contains(f.name()) || !isOfSide(f.name())).toArray(StructField[]::new));
  }
}

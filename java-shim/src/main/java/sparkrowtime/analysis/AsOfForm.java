package sparkrowtime.analysis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.LessThanOrEqual;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import sparkrowtime.compat.BuiltFor;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * An ASOF JOIN of two streams as the operator {@code asofJoin} takes it: which times are compared, and which keys have
 * to be equal. Law: a join that is not exactly of this form has {@link #refusal}, a sentence on why, and is no operator.
 */
final class AsOfForm {
  private static final String FIRST_WITH_SQL = "4.3";
  private static final String PROVIDER = "spark.sql.streaming.stateStore.providerClass";

  private final AsOfJoin join;
  private final List<Expression> leftKeys = new ArrayList<>();
  private final List<Expression> rightKeys = new ArrayList<>();
  private Attribute leftTime;
  private Attribute rightTime;

  /** Null if the join is of this form. */
  final String refusal;

  AsOfForm(AsOfJoin join) {
    this.join = join;
    this.refusal = refusedWhole();
  }

  Attribute leftTime() {
    return leftTime;
  }

  Attribute rightTime() {
    return rightTime;
  }

  List<Expression> leftKeys() {
    return leftKeys;
  }

  List<Expression> rightKeys() {
    return rightKeys;
  }

  boolean isInner() {
    return join.joinType().equals(Inner$.MODULE$);
  }

  /** Why a join is no operator when the query starts. */
  String reason() {
    return refusal == null
        ? "no rowtime stream was in the plan, or the settings were others, when this DataFrame was made: make it again"
        : refusal;
  }

  private String refusedWhole() {
    if (BuiltFor.MINOR.compareTo(FIRST_WITH_SQL) < 0 || !join.left().isStreaming() || !join.right().isStreaming()) {
      return "one side is no stream, or Spark is older than " + FIRST_WITH_SQL;
    }
    String refused = refusedMatch(join.asOfCondition());
    if (refused == null && join.condition().isDefined()) {
      refused = refusedCondition(join.condition().get());
    }
    refused = refused == null ? refusedColumns(join.left()) : refused;
    refused = refused == null ? refusedColumns(join.right()) : refused;
    return refused == null && !SQLConf.get().getConfString(PROVIDER, "").contains("RocksDB")
        ? "it needs the RocksDB state store; set " + PROVIDER
        : refused;
  }

  /** Rows go through Python in Arrow, which has all types but this one. */
  private static String refusedColumns(LogicalPlan side) {
    return Scala.list(side.output()).stream()
        .filter(column -> column.dataType().existsRecursively(Scala.function(CalendarIntervalType.class::isInstance)))
        .findFirst()
        .map(column -> "column " + column.name() + " is " + column.dataType().sql() + ", which Arrow does not have")
        .orElse(null);
  }

  private String refusedMatch(Expression match) {
    boolean mirrored = match instanceof LessThanOrEqual;
    if (!mirrored && !(match instanceof GreaterThanOrEqual)) {
      return "MATCH_CONDITION is not left >= right";
    }
    Expression later = match.children().apply(mirrored ? 1 : 0);
    Expression earlier = match.children().apply(mirrored ? 0 : 1);
    if (isOf(later, join.right().outputSet()) && isOf(earlier, join.left().outputSet())) {
      return "MATCH_CONDITION asks for the next right row, for which no bound is enough without a tolerance: in Python,"
          + " give direction=\"forward\" and tolerance";
    }
    if (!isTime(later, join.left().outputSet()) || !isTime(earlier, join.right().outputSet())) {
      return "MATCH_CONDITION does not compare two TIMESTAMP columns with a watermark";
    }
    leftTime = (Attribute) later;
    rightTime = (Attribute) earlier;
    return null;
  }

  private String refusedCondition(Expression condition) {
    if (condition instanceof And both) {
      String refused = refusedCondition(both.left());
      return refused == null ? refusedCondition(both.right()) : refused;
    }
    if (condition instanceof EqualTo equal && condition.deterministic() && isKey(equal.left().dataType())) {
      boolean straight = isOf(equal.left(), join.left().outputSet()) && isOf(equal.right(), join.right().outputSet());
      boolean mirrored = isOf(equal.right(), join.left().outputSet()) && isOf(equal.left(), join.right().outputSet());
      if (straight || mirrored) {
        leftKeys.add(straight ? equal.left() : equal.right());
        rightKeys.add(straight ? equal.right() : equal.left());
        return null;
      }
    }
    return "ON has another condition than left = right of keys: " + condition.sql();
  }

  private static boolean isOf(Expression expression, AttributeSet side) {
    return expression.references().nonEmpty() && expression.references().subsetOf(side);
  }

  private static boolean isTime(Expression expression, AttributeSet side) {
    return expression instanceof Attribute time
        && isOf(time, side)
        && time.dataType() instanceof TimestampType
        && Rowtime.isWatermarked(time);
  }

  private static boolean isKey(DataType type) {
    return type instanceof StringType text
        ? text.isUTF8BinaryCollation()
        : type instanceof NumericType
            || type instanceof BooleanType
            || type instanceof BinaryType
            || type instanceof DateType
            || type instanceof TimestampType
            || type instanceof TimestampNTZType;
  }
}

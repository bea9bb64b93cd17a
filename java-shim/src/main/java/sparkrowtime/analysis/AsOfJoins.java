package sparkrowtime.analysis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.AsOfJoin;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.None$;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractPartialFunction;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The resolution rule that makes SQL's ASOF JOIN of two streams the operator {@code asofJoin}, once Spark has resolved
 * its conditions. What has another form ({@link AsOfForm}) stays, and is refused when the query starts.
 *
 * <p>Law: it does not change plans without a rowtime stream. Where that is read is not asked: the sides of a join may be
 * references to a WITH of the same plan.
 */
public final class AsOfJoins extends Rule<LogicalPlan> {
  private final SparkSession session;

  public AsOfJoins(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return ShimMismatch.guarded(
        () -> plan.exists(AsOfJoins::isTaken) && plan.exists(RowtimeReads::isBounded)
            ? plan.resolveOperatorsUpWithNewOutput(replacing())
            : plan);
  }

  private static boolean isTaken(LogicalPlan node) {
    return node instanceof AsOfJoin join && join.resolved() && new AsOfForm(join).refusal == null;
  }

  private AbstractPartialFunction<LogicalPlan, Tuple2<LogicalPlan, Seq<Tuple2<Attribute, Attribute>>>> replacing() {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(LogicalPlan node) {
        return isTaken(node);
      }

      @Override
      public Tuple2<LogicalPlan, Seq<Tuple2<Attribute, Attribute>>> apply(LogicalPlan node) {
        return replaced((AsOfJoin) node);
      }
    };
  }

  /** The operator under the names of the join's columns, and for each of these the column that takes its place. */
  private Tuple2<LogicalPlan, Seq<Tuple2<Attribute, Attribute>>> replaced(AsOfJoin join) {
    AsOfOperator operator = new AsOfOperator((org.apache.spark.sql.classic.SparkSession) session, join);
    LogicalPlan made = operator.plan();
    List<NamedExpression> columns = new ArrayList<>();
    List<Tuple2<Attribute, Attribute>> replaced = new ArrayList<>();
    for (Attribute old : Scala.list(join.output())) {
      NamedExpression column = new Alias(
          operator.of(old, made), old.name(), NamedExpression.newExprId(), old.qualifier(), None$.empty(), Scala.seq(List.of()));
      columns.add(column);
      replaced.add(new Tuple2<>(old, column.toAttribute()));
    }
    return new Tuple2<>(new Project(Scala.seq(columns), made), Scala.seq(replaced));
  }
}

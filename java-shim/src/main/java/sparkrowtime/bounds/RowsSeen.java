package sparkrowtime.bounds;

import java.util.List;
import java.util.OptionalLong;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The least rowtime, at or above a given one, among the rows that the streams below a column have sent
 * up to a batch's end. A join keeps no other values of that column: the filters, projections,
 * deduplications and joins in between drop rows, but change none.
 *
 * <p>Law: the result is a function of the log and the batch's offsets, so a batch that is run again sees
 * the same. It is empty if the column is not the rowtime of streams, unchanged or renamed, below such
 * operators.
 */
public final class RowsSeen {
  private final Function<RowtimeStream, Offset> ends;

  /**
   * @param ends the offset up to which the batch reads each stream; null if nothing has been read
   */
  public RowsSeen(Function<RowtimeStream, Offset> ends) {
    this.ends = ends;
  }

  /** The least rowtime at or above {@code from}; {@link Bound#UNLIMITED} if no row is. */
  OptionalLong least(LogicalPlan plan, Attribute column, long from) {
    if (plan instanceof StreamingDataSourceV2ScanRelation source) {
      return sent(source, column, from);
    } else if (plan instanceof Union union) {
      return weakest(union, union.output().indexWhere(Scala.function(a -> a.exprId().equals(column.exprId()))), from);
    }
    Attribute below = plan instanceof Project project ? renamed(project, column) : column;
    return below == null
        ? OptionalLong.empty()
        : Scala.list(plan.children()).stream()
            .filter(child -> child.outputSet().contains(below))
            .findFirst()
            .map(child -> least(child, below, from))
            .orElse(OptionalLong.empty());
  }

  /** The least rowtime that a stream has sent; {@link Bound#UNLIMITED} if it has sent no rows, and for tables. */
  public long leastOf(SparkDataStream source) {
    Offset end = source instanceof RowtimeStream stream && !stream.isOfLateRows() ? ends.apply(stream) : null;
    return end == null ? Bound.UNLIMITED : leastSent((RowtimeStream) source, end, 0);
  }

  private static long leastSent(RowtimeStream stream, Offset end, long from) {
    Long least = stream.questions().leastSent(end, from);
    return least == null ? Bound.UNLIMITED : least;
  }

  private OptionalLong sent(StreamingDataSourceV2ScanRelation source, Attribute column, long from) {
    if (!(source.stream() instanceof RowtimeStream stream) || stream.isOfLateRows() || !isRowtime(column, source)) {
      return OptionalLong.empty();
    }
    Offset end = ends.apply(stream);
    return OptionalLong.of(end == null ? Bound.UNLIMITED : leastSent(stream, end, from));
  }

  /** A reference to a column has the name as the user wrote it, maybe in capitals; the source has its own. */
  private static boolean isRowtime(Attribute column, StreamingDataSourceV2ScanRelation source) {
    return Rowtime.isRowtime(source.output().apply(Definitions.place(column, source)));
  }

  private OptionalLong weakest(Union union, int index, long from) {
    List<OptionalLong> all =
        Scala.list(union.children()).stream()
            .map(child -> least(child, child.output().apply(index), from))
            .toList();
    return all.stream().allMatch(OptionalLong::isPresent)
        ? all.stream().mapToLong(OptionalLong::getAsLong).min()
        : OptionalLong.empty();
  }

  private static Attribute renamed(Project project, Attribute column) {
    return (Attribute)
        Scala.list(project.projectList()).stream()
            .filter(e -> e.exprId().equals(column.exprId()))
            .map(e -> ExprBounds.uncast(e instanceof Alias alias ? alias.child() : (Expression) e))
            .filter(Attribute.class::isInstance)
            .findFirst()
            .orElse(null);
  }
}

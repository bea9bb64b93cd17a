package sparkrowtime.analysis;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.types.BinaryType;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The operators of this library in an analyzed plan: rows are packed into chunks (mapInArrow), kept and
 * given out by a state function (transformWithState), and unpacked again (mapInArrow). The columns that
 * these make say in their metadata which column of the input they follow.
 *
 * <p>Law: the metadata counts only where the plan has that shape. It comes along with a schema, but no
 * DataFrame that a user has in hand has a chunk that says so.
 */
public final class PackedRows {
  private static final String CHUNK = "chunk";

  private PackedRows() {}

  /** A column of packed rows, which a state function or packing has made. */
  public static boolean isChunk(Attribute column) {
    return column.name().equals(CHUNK) && column.dataType() instanceof BinaryType && Rowtime.follows(column);
  }

  /** The column of its input that a column made by {@code node} follows; null where the node is not one of these. */
  public static Attribute followed(Attribute column, LogicalPlan node) {
    if (!Rowtime.follows(column) || node.children().size() == 0) {
      return null;
    }
    LogicalPlan input = node.children().apply(0);
    boolean packs = node instanceof MapInArrow && isChunk(column);
    boolean unpacks = node instanceof MapInArrow && isStateFunction(input);
    boolean keeps = isStateFunction(node) && isChunk(column) && isPacked(input);
    return packs || unpacks || keeps ? named(column.metadata().getString(Rowtime.FOLLOWS), input) : null;
  }

  private static boolean isStateFunction(LogicalPlan node) {
    return node instanceof TransformWithStateInPySpark && hasChunk(node);
  }

  private static boolean isPacked(LogicalPlan plan) {
    return plan instanceof Project project ? isPacked(project.child()) : plan instanceof MapInArrow && hasChunk(plan);
  }

  private static boolean hasChunk(LogicalPlan plan) {
    return Scala.list(plan.output()).stream().anyMatch(PackedRows::isChunk);
  }

  private static Attribute named(String name, LogicalPlan input) {
    List<Attribute> found = Scala.list(input.output()).stream().filter(a -> a.name().equals(name)).toList();
    return found.isEmpty() ? null : found.get(0);
  }
}

package sparkrowtime.plan;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.TransformWithStateInPySpark;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.types.BinaryType;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The operators of this library in an analyzed plan. Rows are packed into chunks (mapInArrow), kept and
 * output by a state function (transformWithState), and unpacked again (mapInArrow). Those of several streams
 * are packed each, and united. The metadata of the
 * columns that these create names the column of the input that they follow.
 *
 * <p>Law: the metadata counts only where the plan has that shape. Metadata is copied with a schema, but no
 * DataFrame that users get has a chunk column with it.
 */
public final class PackedRows {
  public static final String CHUNK = "chunk";

  /** The columns with the hash of the keys, below what packs the rows: in as many buckets as there are, or whole. */
  public static final String BUCKET = "bucket";

  public static final String KEY_HASH = "keyHash";

  private PackedRows() {}

  /** Whether this is a column of packed rows, created by packing or by a state function. */
  public static boolean isChunk(Attribute column) {
    return column.name().equals(CHUNK) && column.dataType() instanceof BinaryType && Rowtime.follows(column);
  }

  /**
   * The input column that a column created by {@code node} follows; null if the node is not one of these
   * operators.
   */
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

  /** For how long a state function keeps which rows, as the library describes it; empty if it does not. */
  public static String kept(LogicalPlan function) {
    return Scala.list(function.output()).stream()
        .filter(column -> isChunk(column) && column.metadata().contains(Rowtime.KEPT_BY))
        .map(column -> column.metadata().getString(Rowtime.KEPT_BY))
        .collect(Collectors.joining());
  }

  /** The columns with the hash of the keys, one for each input of a state function. */
  public static Stream<Attribute> hashes(LogicalPlan function) {
    return Scala.list(function.children()).stream().flatMap(PackedRows::hashesOf);
  }

  private static Stream<Attribute> hashesOf(LogicalPlan packed) {
    return packed instanceof MapInArrow
        ? Scala.list(packed.children().apply(0).output()).stream().filter(PackedRows::isHash)
        : hashes(packed);
  }

  private static boolean isHash(Attribute column) {
    return column.name().equals(BUCKET) || column.name().equals(KEY_HASH);
  }

  public static boolean isStateFunction(LogicalPlan node) {
    return node instanceof TransformWithStateInPySpark && hasChunk(node);
  }

  private static boolean isPacked(LogicalPlan plan) {
    boolean passes = plan instanceof Project || plan instanceof Union;
    return passes
        ? Scala.list(plan.children()).stream().allMatch(PackedRows::isPacked)
        : plan instanceof MapInArrow && hasChunk(plan);
  }

  private static boolean hasChunk(LogicalPlan plan) {
    return Scala.list(plan.output()).stream().anyMatch(PackedRows::isChunk);
  }

  private static Attribute named(String name, LogicalPlan input) {
    List<Attribute> found = Scala.list(input.output()).stream().filter(a -> a.name().equals(name)).toList();
    return found.isEmpty() ? null : found.get(0);
  }
}

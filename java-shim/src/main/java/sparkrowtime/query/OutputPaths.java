package sparkrowtime.query;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.bounds.Bound;
import sparkrowtime.bounds.Columns;
import sparkrowtime.bounds.EndOfTime;

/**
 * The names under which the bounds of a query's output are published. They are those of Spark's
 * expressions: a column name with a dot or a backtick is in backticks, and a window's end is {@code
 * window.end}.
 *
 * <p>Law: a name that stands for several columns has a bound only if each of them has one. A column with
 * dots is also published under its bare name, unless that names a field of a struct.
 */
final class OutputPaths {
  private static final long NONE = Bound.UNKNOWN_YET;

  private OutputPaths() {}

  static Map<String, Long> floors(List<Attribute> output, Columns columns) {
    Map<String, Long> floors = new TreeMap<>();
    for (Attribute a : output) {
      if (a.dataType() instanceof StructType) {
        put(floors, quoted(a.name()) + ".start", columns.get(a.exprId(), "start"));
        put(floors, quoted(a.name()) + ".end", columns.get(a.exprId(), "end"));
      } else {
        put(floors, quoted(a.name()), columns.get(a));
        putBare(floors, a.name(), columns.get(a), output);
      }
    }
    floors.values().removeIf(floor -> floor == NONE);
    return floors;
  }

  private static void putBare(Map<String, Long> floors, String name, Bound bound, List<Attribute> output) {
    boolean isField =
        output.stream().anyMatch(a -> a.dataType() instanceof StructType && name.startsWith(a.name() + "."));
    if (!isField && !name.equals(quoted(name))) {
      put(floors, name, bound);
    }
  }

  private static void put(Map<String, Long> floors, String path, Bound bound) {
    floors.merge(path, bound != null && bound.isPromise() ? EndOfTime.published(bound.floor()) : NONE, Math::min);
  }

  private static String quoted(String name) {
    boolean plain = name.indexOf('.') < 0 && name.indexOf('`') < 0;
    return plain ? name : "`" + name.replace("`", "``") + "`";
  }
}

package sparkrowtime.query;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
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

  /** What can have a bound in the output: its name, and its place in the column that has it. */
  record Path(String name, Attribute column, List<Integer> place) {}

  /** All that can have a bound in the output. */
  static List<Path> places(List<Attribute> output) {
    return output.stream().flatMap(OutputPaths::places).toList();
  }

  private static Stream<Path> places(Attribute a) {
    String name = quoted(a.name());
    if (a.dataType() instanceof StructType type) {
      return Stream.of("start", "end")
          .filter(field -> index(field, type) >= 0)
          .map(field -> new Path(name + "." + field, a, List.of(index(field, type))));
    }
    return Stream.of(new Path(name, a, Columns.WHOLE));
  }

  /** The index of the only field of this name; -1 if there is none, or several. */
  private static int index(String field, StructType type) {
    List<String> names = List.of(type.fieldNames());
    return names.indexOf(field) == names.lastIndexOf(field) ? names.indexOf(field) : -1;
  }

  static Map<String, Long> floors(List<Attribute> output, Columns columns) {
    Map<String, Long> floors = new TreeMap<>();
    for (Path path : places(output)) {
      Bound bound = columns.get(path.column().exprId(), path.place());
      put(floors, path.name(), bound);
      if (path.place().isEmpty()) {
        putBare(floors, path.column().name(), bound, output);
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

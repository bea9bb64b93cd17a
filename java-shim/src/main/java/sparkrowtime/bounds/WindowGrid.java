package sparkrowtime.bounds;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import sparkrowtime.support.Scala;

/**
 * Where the windows of a query lie, for people who ask when a row's window closes. In microseconds: the windows of
 * a column begin every {@code slide} at multiples of it after {@code start}, and the window into which a row at
 * such a beginning falls last ends {@code reach} after it.
 *
 * <p>The numbers are read off the bounds that the plan gives for two times. A column for which they do not fit
 * together has none.
 */
public final class WindowGrid {
  private static final long ANY_TIME = 1_000_000_000_000_000L;
  private static final long ODD = 12_345_678_901L;

  private final Definitions definitions;
  private final List<LogicalPlan> nodes;
  private final Map<ExprId, Optional<Map<String, Long>>> found = new HashMap<>();
  private final Map<ExprId, Optional<Long>> aheads = new HashMap<>();

  public WindowGrid(Definitions definitions, LogicalPlan plan) {
    this.definitions = definitions;
    this.nodes = Scala.list(plan.collect(Scala.only(LogicalPlan.class)));
  }

  /** The numbers of one window column; they are the same in each batch. */
  public Optional<Map<String, Long>> of(Attribute window) {
    return found.computeIfAbsent(window.exprId(), id -> find(window));
  }

  /** By how much a column lies ahead of the rows' time, which is the same for all rows and batches; empty if that is not known. */
  public Optional<Long> ahead(Attribute time) {
    return aheads.computeIfAbsent(time.exprId(), id -> findAhead(time));
  }

  private Optional<Long> findAhead(Attribute time) {
    Long any = isOfOneTime(time) ? aheadAt(time, ANY_TIME) : null;
    boolean same = any != null && any.equals(aheadAt(time, ANY_TIME + 1)) && any.equals(aheadAt(time, ANY_TIME + ODD));
    boolean earlier = any != null && any <= 0 && !same; // rounded down
    return Optional.ofNullable(same ? any : earlier ? (Long) 0L : null);
  }

  private Long aheadAt(Attribute time, long micros) {
    return nodes.stream()
        .filter(n -> n.outputSet().contains(time))
        .map(n -> new PlanBounds(definitions, stream -> micros).of(n).get(time))
        .filter(bound -> bound != null && bound.isKnown())
        .findFirst()
        .map(bound -> bound.floor() - micros)
        .orElse(null);
  }

  /** Whether nothing but one time decides the column: of several, as in greatest(a, b), the other may be later. */
  private boolean isOfOneTime(Attribute column) {
    Alias made = Origin.alias(column, nodes.get(0));
    List<Attribute> used = made == null ? List.of() : Scala.list(made.references().toSeq());
    return made == null || used.size() == 1 && isOfOneTime(used.get(0));
  }

  private Optional<Map<String, Long>> find(Attribute window) {
    boolean slides = nodes.stream().anyMatch(n -> n instanceof Expand && n.outputSet().contains(window));
    if (slides || !isOfOneTime(window)) {
      return Optional.empty();
    }
    return nodes.stream()
        .filter(n -> n.outputSet().contains(window))
        .map(n -> of(window, n))
        .filter(Objects::nonNull)
        .findFirst();
  }

  private Map<String, Long> of(Attribute window, LogicalPlan node) {
    long[] any = window(window, node, ANY_TIME);
    if (any == null || any[1] <= any[0]) {
      return null;
    }
    long size = any[1] - any[0];
    long first = ANY_TIME - Math.floorMod(ANY_TIME - any[0], size); // a row there begins a window, if none is shifted
    long[] at = window(window, node, first);
    long[] before = window(window, node, first - 1);
    boolean begins = at != null && before != null && at[1] - before[1] == size;
    if (!begins) {
      return null;
    }
    Map<String, Long> grid = new LinkedHashMap<>();
    grid.put("slide", size);
    grid.put("start", Math.floorMod(first, size));
    grid.put("reach", at[1] - first);
    return grid;
  }

  /** Start and end of the window of a row at this time; null if they are not known below the operators that keep rows. */
  private long[] window(Attribute window, LogicalPlan node, long micros) {
    Columns columns = new PlanBounds(definitions, stream -> micros).of(node);
    Bound start = columns.get(window.exprId(), Columns.START);
    Bound end = columns.get(window.exprId(), Columns.END);
    boolean known = start != null && end != null && start.isKnown() && end.isKnown();
    return known ? new long[] {start.floor(), end.floor()} : null;
  }
}

package sparkrowtime.source;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.UnaryOperator;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.execution.streaming.runtime.SerializedOffset;
import sparkrowtime.query.BoundedQuery;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;
import sparkrowtime.tables.CommitLog;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableBounds;
import sparkrowtime.tables.TableName;
import sparkrowtime.tables.TableOffset;
import sparkrowtime.tables.TableStream;
import sparkrowtime.tables.TableWatch;

/** What the sources of tables of each format have in common. Spark calls them in the query's thread. */
abstract class TableSource implements TableStream, ReportsSourceMetrics {
  private static final String DERIVED = "derived (watch)";
  private static final String COMMITTED = "in the table's commits";

  private final CommitLog log;
  private final String number;
  private final TableBounds bounds;
  private final TableWatch watch;
  private boolean begun;
  private Long floor;
  private long late;

  /**
   * @param checkpoint the source's part of the checkpoint
   */
  TableSource(CommitLog log, String checkpoint, InTable mark) {
    this.log = log;
    this.number = new Path(checkpoint).getName();
    this.bounds = new TableBounds(log, mark.column());
    this.watch = TableWatch.of(log, mark);
  }

  @Override
  public Long floor(String offset) {
    return watch == null ? bounds.floorBehind(passed(offset)) : TableOffset.floor(offset);
  }

  @Override
  public final TableName table() {
    return log.table();
  }

  @Override
  public final String number() {
    return number;
  }

  @Override
  public final void late(long rows) {
    late = rows;
  }

  /**
   * The query of this thread, whose bounds are applied from its first call on.
   *
   * @param reached the end of the last batch in Spark's log; null for none
   */
  final BoundedQuery query(Offset reached) {
    BoundedQuery query = BoundedQuery.running();
    query.install();
    if (!begun && reached != null) {
      requireSameBounds(reached.json());
      requireBound(reached.json(), query);
    }
    begun = true;
    return query;
  }

  /** A query that goes on with the bounds of another kind would give out another watermark than its results have. */
  private void requireSameBounds(String reached) {
    boolean derived = TableOffset.isWatched(reached);
    if (derived == (watch != null)) {
      requireSameColumn(TableOffset.column(reached), watch == null ? null : watch.column());
      return;
    }
    if (TableOffset.floor(reached) != null || bounds.floorBehind(passed(reached)) != null) {
      throw new IllegalArgumentException(
          "This query has run with bounds that were " + (derived ? DERIVED : COMMITTED) + ", and is started again with those "
              + (derived ? COMMITTED : DERIVED) + ". What is late, and which windows are final, differs between both. Call"
              + " punctuate as before, or start the query with a new checkpointLocation and a new output.");
    }
  }

  private void requireSameColumn(String before, String now) {
    if (before != null && now != null && !before.equalsIgnoreCase(now)) {
      throw new IllegalArgumentException(
          "This query has run with bounds of the column " + before + " of " + log.table().name() + ", and is started again with"
              + " those of its column " + now + ". Call punctuate over the same column as before, or start the query with a new"
              + " checkpointLocation and a new output.");
    }
  }

  private void requireBound(String reached, BoundedQuery query) {
    if (floor(reached) == null && bounds.isCleaned() && query.watermark() > 0) {
      throw new IllegalStateException(
          "DataLostError: this query has counted on a bound of " + log.table().name() + ", and the commit that has it is no"
              + " longer in the table: " + log.whyCleaned() + ". Start the query with a new checkpointLocation and a new output,"
              + " and let the drain or the query that writes the bounds commit more often than that.");
    }
  }

  /**
   * The end of the next batch, whose floor the query is told.
   *
   * @param next finds it, from the start of the batch, both as the format's own source has them
   */
  final Offset next(Offset start, UnaryOperator<Offset> next) {
    return ShimMismatch.guarded(
        () -> {
          BoundedQuery query = query(start);
          query.reads(this, start);
          Offset found = next.apply(ofFormat(start));
          if (start == null || passed(start.json()) < 0) {
            beginning().ifPresent(bounds::begin);
          }
          Offset end = logged(start, found);
          if (end != null) {
            floor = floor(end.json());
            query.reached(this, end);
          }
          return end;
        });
  }

  /** The last commit whose rows are not read by themselves; empty where that is not known, or makes no difference. */
  abstract OptionalLong beginning();

  /** The end of a batch as Spark logs it. */
  private Offset logged(Offset start, Offset end) {
    if (end == null) {
      return null;
    } else if (watch == null) {
      return withFloor(end, null);
    }
    long from = start == null ? -1 : passed(start.json());
    Long before = start == null ? null : TableOffset.floor(start.json());
    return withFloor(end, watch.floor(before, from, passed(end.json())));
  }

  /** An offset of the format's own source as Spark logs it, with the floor where one is derived. */
  final Offset withFloor(Offset offset, Long floor) {
    return new SerializedOffset(watch == null ? offset.json() : TableOffset.withFloor(offset.json(), floor, watch.column()));
  }

  /** An offset as the format's own source has it. */
  final Offset ofFormat(Offset offset) {
    return offset == null ? null : ofFormat(TableOffset.withoutFloor(offset.json()));
  }

  /** The same from its text. */
  abstract Offset ofFormat(String json);

  @Override
  public final Offset deserializeOffset(String json) {
    return new SerializedOffset(json);
  }

  @Override
  public final Map<String, String> metrics(Optional<Offset> latestConsumed) {
    Map<String, String> metrics = new LinkedHashMap<>();
    if (floor != null) {
      metrics.put("bound", Shown.time(floor));
    }
    metrics.put("rowsLate", Long.toString(late));
    return metrics;
  }
}

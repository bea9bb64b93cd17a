package sparkrowtime.query;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.SparkDataStream;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecutionContext;
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import sparkrowtime.bounds.EndOfTime;
import sparkrowtime.plan.RowtimeReads;
import sparkrowtime.python.RowtimeStream;
import sparkrowtime.support.ArrowRows;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.support.Shown;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;
import sparkrowtime.tables.TableStream;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.LateRows;
import sparkrowtime.topics.TopicBounds;

/**
 * The late rows of a batch: of topics with bounds beside them, and of tables. Used in the query's thread.
 *
 * <p>Law: a row is late by the floor at the start of its batch, a function of offsets in the log. The late rows of topics
 * are handed to the stream of bounds after the batch has run and before Spark commits it, under the batch's number, so the
 * stream has them once, also if the batch runs again.
 */
final class LateBatch {
  private static final Logger LOG = LoggerFactory.getLogger("sparkrowtime");

  /** Spark starts at 1970, and takes rows up to then for late. */
  private static final long FIRST_MICROS = 1;

  /** The late rows of a batch: below this floor, in microseconds. */
  record Late(LateMark mark, long floor, LateRows rows) {}

  private final BoundedQuery query;
  private final Map<ExprId, SparkDataStream> byTime = new HashMap<>();
  private final Map<String, Set<SparkDataStream>> byId = new HashMap<>();
  private final Map<SparkDataStream, List<Late>> late = new HashMap<>();
  private long batch = -1;
  private long began = -1;
  private boolean warned;

  LateBatch(BoundedQuery query) {
    this.query = query;
    query.topics().unions().forEach((stream, union) -> add(stream.unionId(), stream, union));
    query.spark().logicalPlan().foreach(Scala.each(this::addTable));
    query.spark().logicalPlan().foreach(Scala.each(this::requireOther));
  }

  private void addTable(LogicalPlan node) {
    if (InTable.of(node) != null) {
      add(InTable.of(node).id(), table(((Filter) node).child()), node);
    }
  }

  private void add(String id, SparkDataStream stream, LogicalPlan node) {
    byId.computeIfAbsent(id, any -> new HashSet<>()).add(stream);
    Scala.list(node.output()).forEach(a -> byTime.put(a.exprId(), stream));
  }

  /** Late rows that a table keeps come back where the query reads that table, and are late again. */
  private void requireOther(LogicalPlan node) {
    InTable mark = InTable.of(node);
    if (mark != null && mark.keeps()) {
      TableName into = mark.rejected().qualified(query.spark().sparkSessionForStream().sessionState().newHadoopConf());
      if (reads(into)) {
        throw new IllegalArgumentException(
            "rejected=\"" + mark.rejected() + "\": the query reads that table, so each late row would come back."
                + " Name another table.");
      }
    }
  }

  /** Whether the table is one whose bounds the query takes. */
  boolean reads(TableName table) {
    return byId.values().stream()
        .flatMap(Set::stream)
        .anyMatch(stream -> stream instanceof TableStream read && read.table().equals(table));
  }

  private static SparkDataStream table(LogicalPlan rows) {
    TableStream table = RowtimeReads.table(TopicBounds.leaf(rows));
    if (table == null) {
      throw new ShimMismatch("the bounded source of a table below its filter of late rows, not " + TopicBounds.leaf(rows), null);
    }
    return table;
  }

  /** The floor of the batch that is being planned, and where to keep the rows below it. */
  Late lateIn(LateMark mark, Expression time) {
    StreamExecutionContext context = query.spark().getLatestExecutionContext();
    if (context.batchId() != batch) {
      requireKept();
      began = began < 0 ? LoggedWatermark.of(query.spark(), context.batchId() - 1) * 1000 : began;
      query.topics().requireSame(context);
      query.topics().requireNotWeaker(context);
      batch = context.batchId();
      late.clear();
    }
    SparkDataStream stream = stream(mark, time);
    LateRows rows = new LateRows();
    rows.register(query.spark().sparkSessionForStream().sparkContext(), scala.Option.empty(), false);
    long floor = query.floorsOf(batch - 1).applyAsLong(stream);
    Late found = new Late(mark, Math.max(Math.max(floor, ofQuery(context, stream)), FIRST_MICROS), rows);
    late.computeIfAbsent(stream, s -> new ArrayList<>()).add(found);
    return found;
  }

  /**
   * A watermark that may be above the bounds of the source: the one that the query had before it got the source, or began the
   * run with, since a table can have lost its bound, or had none. Rows below it would be lost in the operators. Else 0.
   */
  private long ofQuery(StreamExecutionContext context, SparkDataStream stream) {
    if (!context.startOffsets().contains(stream)) {
      return LoggedWatermark.of(query.spark(), batch - 1) * 1000;
    }
    return stream instanceof TableStream ? began : 0;
  }

  private void requireKept() {
    if (late.values().stream().flatMap(List::stream).anyMatch(found -> !found.rows().isZero())) {
      throw new ShimMismatch("WatermarkTracker.updateWatermark to be called after batch " + batch + " has run", null);
    }
  }

  private SparkDataStream stream(LateMark mark, Expression time) {
    Set<SparkDataStream> found = byId.getOrDefault(mark.id(), Set.of());
    SparkDataStream only = found.size() == 1 ? found.iterator().next() : null;
    SparkDataStream stream = only == null && time instanceof Attribute a ? byTime.get(a.exprId()) : only;
    if (stream == null) {
      throw new ShimMismatch("the time " + time.sql() + " of a filter of late rows to be that of its source", null);
    }
    return stream;
  }

  /** The batch has run: its late rows are counted, and those of topics are kept in the stream of bounds. */
  void ran() {
    byId.values().forEach(streams -> streams.forEach(stream -> counted(stream, 0)));
    late.forEach(this::keep);
    late.clear();
  }

  private static void counted(SparkDataStream stream, long rows) {
    if (stream instanceof RowtimeStream ours) {
      ours.late((int) rows);
    } else {
      ((TableStream) stream).late(rows);
    }
  }

  /** If a plan has the rows twice, each of its filters has all of them, unless a LIMIT ended one early. */
  private void keep(SparkDataStream stream, List<Late> found) {
    Late most = found.stream().reduce((a, b) -> a.rows().count() >= b.rows().count() ? a : b).get();
    counted(stream, most.rows().count());
    if (!most.rows().isZero() && stream instanceof RowtimeStream bounds) {
      StreamProgress ends = query.spark().getLatestExecutionContext().endOffsets();
      String ofTopics = ends.get(query.topics().topic(bounds)).get().json();
      long floor = EndOfTime.published(most.floor());
      bounds.questions().keepLate(ends.get(stream).get(), ofTopics, query.spark().id().toString(), batch, floor, arrow(most));
    } else if (!most.rows().isZero()) {
      keep((TableStream) stream, (InTable) most.mark(), most);
    }
  }

  private void keep(TableStream table, InTable mark, Late found) {
    if (mark.keeps()) {
      Offset end = query.spark().getLatestExecutionContext().endOffsets().get(table).get();
      RejectedTable into = new RejectedTable(query.spark(), table.number(), mark, end);
      into.append(batch, EndOfTime.published(found.floor()), kept(found));
    } else {
      warn(table.table().name(), found);
    }
  }

  private void warn(String table, Late found) {
    if (!warned) {
      warned = true;
      LOG.warn(
          "Batch {} has read {} rows of {} that are below the bound {} which it had reached before. Somebody who knows"
              + " nothing of the bound writes to the table. These rows are late: they do not reach the query, which goes on."
              + " Its progress counts them (rowsLate). This is said once in a run.",
          batch, found.rows().count(), table, Shown.time(EndOfTime.published(found.floor())));
    }
  }

  private static byte[] arrow(Late late) {
    return ArrowRows.stream(kept(late), late.mark().kept());
  }

  private static List<InternalRow> kept(Late late) {
    int columns = late.mark().kept().length();
    return late.rows().value().values().stream().map(one -> row(one.bytes(), columns)).toList();
  }

  private static InternalRow row(byte[] bytes, int columns) {
    UnsafeRow row = new UnsafeRow(columns);
    row.pointTo(bytes, bytes.length);
    return row;
  }
}

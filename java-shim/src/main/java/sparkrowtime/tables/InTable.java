package sparkrowtime.tables;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.LateRows;

/** The late rows of a table that has bounds in its commits. They are counted, and kept where the user says so. */
public final class InTable extends LateMark {
  private static final long serialVersionUID = 1L;
  private static final int COUNT_BITS = 33;

  private final TableName bounds;
  private final TableName rejected;
  private final Declared declared;
  private final String column;
  private final StructType kept;
  private transient UnsafeProjection copy;

  /**
   * @param bounds how the user has named the table; null if not at all
   * @param rejected the table that keeps late rows; null for none
   * @param declared from what bounds are derived; null where they are in the commits
   */
  public InTable(TableName bounds, TableName rejected, Declared declared) {
    this(null, bounds, rejected, declared, null, null, null);
  }

  private InTable(
      String id, TableName bounds, TableName rejected, Declared declared, String column, StructType kept, LateRows rows) {
    super(id, rows);
    this.bounds = bounds;
    this.rejected = rejected;
    this.declared = declared;
    this.column = column;
    this.kept = kept;
  }

  /** The column of the table that is the time; null if the time is computed. */
  public String column() {
    return column;
  }

  /** From what the bounds are derived; null where they are in the commits. */
  public Declared declared() {
    return declared;
  }

  /** Whether late rows are kept. */
  public boolean keeps() {
    return rejected != null;
  }

  /** The table that keeps late rows. */
  public TableName rejected() {
    return rejected;
  }

  @Override
  public StructType kept() {
    return kept;
  }

  /** The mark of a filter of late rows of a table; null for other nodes. */
  public static InTable of(Object node) {
    return node instanceof Filter filter && LateMark.of(filter.condition()) instanceof InTable mark ? mark : null;
  }

  /** Refuses a table that is not the one whose bounds the user has named. */
  public void requireOf(TableName table, Configuration hadoop) {
    if (bounds != null && !bounds.qualified(hadoop).equals(table)) {
      throw new IllegalArgumentException(
          "punctuate(..., bounds=\"" + bounds + "\"): the rows are those of " + table + ". The bounds of a table are about its"
              + " own versions. Leave bounds out, or name that table.");
    }
  }

  /**
   * The same for one relation.
   *
   * @param id the use of the table; null before its relation is known
   * @param column the column of the table that is the time; null if the time is computed
   * @param rows the columns of its rows
   */
  public InTable of(String id, String column, StructType rows) {
    return new InTable(id, bounds, rejected, declared, column, rows, null);
  }

  @Override
  public InTable keepingIn(LateRows rows) {
    return new InTable(id(), bounds, rejected, declared, column, kept, rows);
  }

  /**
   * Counts a late row. Returns false, so that it does not reach the operators.
   *
   * @param place the partition of the rows and the number of the late row there, as Spark's monotonically_increasing_id has
   *     them: the same in each job of a foreachBatch, whatever task has the partition
   */
  public boolean late(long time, long place) {
    rows().add(LateRows.counted(place >> COUNT_BITS, (place & ((1L << COUNT_BITS) - 1)) + 1));
    return false;
  }

  /** Keeps a late row, by its place. */
  public boolean late(long time, InternalRow row, long place) {
    LateRows rows = rows();
    if (copy == null) {
      copy = UnsafeProjection.create(kept);
    }
    rows.add(LateRows.row(Long.toString(place), copy.apply(row)));
    return false;
  }

  @Override
  public String toString() {
    return "table[" + id() + "]";
  }
}

package sparkrowtime.tables;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.types.StructType;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.LateRows;

/** The late rows of a table that has bounds in its commits. They are counted, and kept where the user says so. */
public final class InTable extends LateMark {
  private static final long serialVersionUID = 1L;

  /** What the name of a Delta table begins with. */
  public static final String PREFIX = "delta:";

  private final String bounds;
  private final String rejected;
  private final Long lateness;
  private final String column;
  private final StructType kept;
  private transient UnsafeProjection copy;
  private long count;

  /**
   * @param bounds how the user has named the table: {@code delta:PATH}; empty if not at all
   * @param rejected the table that keeps late rows, in the same form; empty for none
   * @param lateness where bounds are derived from the times of rows: how far a row may lie below the largest one, in
   *     microseconds; null where they are in the commits
   */
  public InTable(String bounds, String rejected, Long lateness) {
    this(null, bounds, rejected, lateness, null, null, null);
  }

  private InTable(
      String id, String bounds, String rejected, Long lateness, String column, StructType kept, LateRows rows) {
    super(id, rows);
    this.bounds = bounds;
    this.rejected = rejected;
    this.lateness = lateness;
    this.column = column;
    this.kept = kept;
  }

  /** The column of the table that is the time; null if the time is computed. */
  public String column() {
    return column;
  }

  /** How far a row may lie below the largest one, where bounds are derived from that; otherwise null. */
  public Long lateness() {
    return lateness;
  }

  /** Whether late rows are kept. */
  public boolean keeps() {
    return !rejected.isEmpty();
  }

  /** The path of the Delta table that keeps late rows. */
  public String rejected() {
    return rejected.substring(PREFIX.length());
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
  public void requireOf(Path data, Configuration hadoop) {
    if (!bounds.isEmpty() && !qualified(new Path(bounds.substring(PREFIX.length())), hadoop).equals(data)) {
      throw new IllegalArgumentException(
          "punctuate(..., bounds=\"" + bounds + "\"): the rows are those of " + data + ". The bounds of a table are about its"
              + " own versions. Leave bounds out, or name that table.");
    }
  }

  /** The path of a table as its source has it. */
  public static Path qualified(Path path, Configuration hadoop) {
    try {
      return path.getFileSystem(hadoop).makeQualified(path);
    } catch (IOException e) {
      throw new UncheckedIOException("The file system of " + path + " is not known.", e);
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
    return new InTable(id, bounds, rejected, lateness, column, rows, null);
  }

  @Override
  public InTable keepingIn(LateRows rows) {
    return new InTable(id(), bounds, rejected, lateness, column, kept, rows);
  }

  /** Counts a late row. Returns false, so that it does not reach the operators. */
  public boolean late(long time) {
    rows().add(LateRows.counted(TaskContext.getPartitionId(), ++count));
    return false;
  }

  /** Keeps a late row, by its number in its task. */
  public boolean late(long time, InternalRow row) {
    LateRows rows = rows();
    if (copy == null) {
      copy = UnsafeProjection.create(kept);
    }
    rows.add(LateRows.row(TaskContext.getPartitionId() + "/" + ++count, copy.apply(row).getBytes()));
    return false;
  }

  @Override
  public String toString() {
    return "table[" + id() + "]";
  }
}

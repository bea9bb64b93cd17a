package sparkrowtime.beside;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import sparkrowtime.support.ShimMismatch;

/**
 * The function that takes the late rows of a topic. In the plan of a query it is a mark, which names the use of the
 * stream of bounds. In the plan of a batch {@link sparkrowtime.query.LateFilter} puts one in its place that keeps the
 * late rows, behind a comparison with the bound. So it is called for late rows only. Its copies run in tasks.
 */
public final class InTime implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The name of {@link #late}, for Spark's call. */
  public static final String METHOD = "late";

  private final String id;
  private final StructType kept;
  private final LateRows rows;
  private transient UnsafeProjection copy;

  public InTime(String id, StructType kept) {
    this(id, kept, null);
  }

  private InTime(String id, StructType kept, LateRows rows) {
    this.id = id;
    this.kept = kept;
    this.rows = rows;
  }

  /** The use of the stream of bounds. */
  public String id() {
    return id;
  }

  /** The columns of a late row that are kept: those of the stream of bounds. */
  public StructType kept() {
    return kept;
  }

  public InTime keepingIn(LateRows rows) {
    return new InTime(id, kept, rows);
  }

  /** Keeps a late row. Returns false, so that it does not reach the operators. */
  public boolean late(long time, UTF8String topic, int partition, long offset, InternalRow row) {
    if (rows == null) {
      throw new ShimMismatch("the late rows of a topic to be compared with the bound before the batch runs", null);
    }
    if (copy == null) {
      copy = UnsafeProjection.create(kept);
    }
    rows.add(new LateRows.Row(topic + "/" + partition + "/" + offset, copy.apply(row).getBytes()));
    return false;
  }

  @Override
  public String toString() {
    return "beside[" + id + "]";
  }
}

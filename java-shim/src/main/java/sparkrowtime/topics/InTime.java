package sparkrowtime.topics;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The late rows of a topic, with bounds in a stream beside it. */
public final class InTime extends LateMark {
  private static final long serialVersionUID = 1L;

  private final StructType kept;
  private transient UnsafeProjection copy;

  /**
   * @param id the use of the stream of bounds
   */
  public InTime(String id, StructType kept) {
    this(id, kept, null);
  }

  private InTime(String id, StructType kept, LateRows rows) {
    super(id, rows);
    this.kept = kept;
  }

  /** Those of the stream of bounds. */
  @Override
  public StructType kept() {
    return kept;
  }

  @Override
  public InTime keepingIn(LateRows rows) {
    return new InTime(id(), kept, rows);
  }

  /** Keeps a late row. Returns false, so that it does not reach the operators. */
  public boolean late(long time, UTF8String topic, int partition, long offset, InternalRow row) {
    LateRows rows = rows();
    if (copy == null) {
      copy = UnsafeProjection.create(kept);
    }
    rows.add(LateRows.row(topic + "/" + partition + "/" + offset, copy.apply(row)));
    return false;
  }

  @Override
  public String toString() {
    return "topicBounds[" + id() + "]";
  }
}

package sparkrowtime.topics;

import java.io.Serializable;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.AccumulatorV2;

/**
 * The late rows of a batch, by their place: topic, partition and offset, or a partition of the rows and a number. Tasks add to
 * it, and Spark merges what successful tasks have added. A task, or a job of a foreachBatch, that runs again adds the
 * same rows, which count once. While a task adds rows, its executor sends those that it has to the driver every ten
 * seconds, in another thread.
 */
public final class LateRows extends AccumulatorV2<LateRows.Late, Map<String, LateRows.Late>> {
  private static final long serialVersionUID = 1L;

  /**
   * A late row in Spark's binary format, or so many late rows that are not kept.
   *
   * @param bytes null if they are not kept
   */
  public record Late(String place, byte[] bytes, long count) implements Serializable {}

  private final ConcurrentSkipListMap<String, Late> rows = new ConcurrentSkipListMap<>();

  /** A late row that is kept. The memory of a projection's row, which is its array of bytes at times, has the next row later. */
  public static Late row(String place, UnsafeRow row) {
    return new Late(place, row.copy().getBytes(), 1);
  }

  /** So many late rows of one partition up to now. */
  public static Late counted(long partition, long count) {
    return new Late(Long.toString(partition), null, count);
  }

  /** How many rows these are. */
  public long count() {
    return rows.values().stream().mapToLong(Late::count).sum();
  }

  @Override
  public boolean isZero() {
    return rows.isEmpty();
  }

  @Override
  public LateRows copy() {
    LateRows copy = new LateRows();
    copy.rows.putAll(rows);
    return copy;
  }

  @Override
  public void reset() {
    rows.clear();
  }

  @Override
  public void add(Late late) {
    rows.merge(late.place(), late, LateRows::more);
  }

  @Override
  public void merge(AccumulatorV2<Late, Map<String, Late>> other) {
    other.value().values().forEach(this::add);
  }

  /** A job that ends early counts a part of a partition's late rows. */
  private static Late more(Late one, Late other) {
    return other.count() >= one.count() ? other : one;
  }

  @Override
  public Map<String, Late> value() {
    return rows;
  }
}

package sparkrowtime.beside;

import java.io.Serializable;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.spark.util.AccumulatorV2;

/**
 * The late rows of a batch, by topic, partition and offset. Tasks add to it, and Spark merges what successful tasks
 * have added. A task, or a job of a foreachBatch, that runs again adds the same rows, which count once. While a task
 * adds rows, its executor sends those that it has to the driver every ten seconds, in another thread.
 */
public final class LateRows extends AccumulatorV2<LateRows.Row, Map<String, byte[]>> {
  private static final long serialVersionUID = 1L;

  /** A row in Spark's binary format, and its place in the topics. */
  public record Row(String place, byte[] bytes) implements Serializable {}

  private final ConcurrentSkipListMap<String, byte[]> rows = new ConcurrentSkipListMap<>();

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
  public void add(Row row) {
    rows.put(row.place(), row.bytes());
  }

  @Override
  public void merge(AccumulatorV2<Row, Map<String, byte[]>> other) {
    rows.putAll(other.value());
  }

  @Override
  public Map<String, byte[]> value() {
    return rows;
  }
}

package sparkrowtime.tables;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;
import sparkrowtime.support.ByName;

/** The largest time of a column in a file of an Iceberg table, by the upper bounds in its manifest: no row is read. */
final class IcebergTimes {
  private IcebergTimes() {}

  /**
   * @param file Iceberg's data file
   * @param column the number of the column; null where it has none
   */
  static CommitLog.FileTime of(Object file, Integer column) {
    ByteBuffer bound = (ByteBuffer) statistic(file, "upperBounds", column);
    Object rows = ByName.call(file, "recordCount");
    boolean isEmpty = rows.equals(0L) || rows.equals(statistic(file, "nullValueCounts", column));
    return new CommitLog.FileTime(bound == null ? null : Long.valueOf(micros(bound)), bound != null || isEmpty);
  }

  private static Object statistic(Object file, String statistics, Integer column) {
    Map<?, ?> found = (Map<?, ?>) ByName.call(file, statistics);
    return found == null ? null : found.get(column);
  }

  /** A time with its zone, as Iceberg's format has it. */
  private static long micros(ByteBuffer bound) {
    return bound.duplicate().order(ByteOrder.LITTLE_ENDIAN).getLong();
  }
}

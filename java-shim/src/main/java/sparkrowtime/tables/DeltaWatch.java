package sparkrowtime.tables;

/**
 * Derives the bounds of a Delta table in whose commits nobody writes any: the largest time that its rows have had so far,
 * less the lateness that the user declares.
 *
 * <p>Law: the floor is a part of the offset, which Spark logs. So a batch that runs again has the floor that it had, whatever
 * has become of the table's log, and the floor never falls.
 */
public final class DeltaWatch {
  /** Of how many commits before the query's first one the statistics are looked at. */
  private static final int BEFORE = 100;

  private final LargestTimes times;
  private final long lateness;

  /**
   * @param column the column of the table with the time
   * @param lateness in microseconds
   */
  public DeltaWatch(DeltaLog files, String column, long lateness) {
    this.times = new LargestTimes(files, column);
    this.lateness = lateness;
  }

  /**
   * An offset of Delta's source with its floor. A snapshot with which a query starts has that of its newest commits, once
   * all of it is read.
   *
   * @param start where the batch starts, with its floor; null for the first one
   * @param end where Delta's source ends it
   */
  public String withFloor(String start, String end) {
    long from = start == null ? -1 : DeltaOffset.of(start).passed();
    long to = DeltaOffset.of(end).passed();
    Long floor = start == null ? null : DeltaOffset.floor(start);
    for (long version = from < 0 ? Math.max(0, to - BEFORE + 1) : from + 1; version <= to; version++) {
      Long largest = times.in(version);
      floor = LargestTimes.later(floor, largest == null || largest <= lateness ? null : Long.valueOf(largest - lateness));
    }
    return DeltaOffset.with(end, floor);
  }
}

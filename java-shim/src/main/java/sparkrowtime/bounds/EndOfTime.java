package sparkrowtime.bounds;

/**
 * The floor of a stream whose producers are all complete: no row follows. Offsets and published bounds have
 * it as {@link #PUBLISHED}, the microsecond after the last legal rowtime. A window or a join may end later
 * than that, so within a query it is {@link #WITHIN}, far beyond any time that a row can lead to.
 *
 * <p>Law: an expression or an operator moves a bound by no more than {@link #FARTHEST_MICROS}, so a bound
 * beyond {@code WITHIN - FARTHEST_MICROS} comes from the end of time, and no other bound gets there. A
 * smaller one that lies beyond the legal rowtimes is published as the last of them.
 */
public final class EndOfTime {
  /** 9999-12-31T23:59:59.999999Z. */
  public static final long PUBLISHED = 253_402_300_799_999_999L;

  /** About the year 82,000, well within Spark's timestamps, and in ms within its watermarks. */
  static final long WITHIN = PUBLISHED * 10 + 9;

  private static final long FARTHEST_MICROS = PUBLISHED * 4;

  private EndOfTime() {}

  /** A stream's floor, as the query computes with it. Null: it has promised nothing yet. */
  public static long floor(Long published) {
    if (published == null) {
      return Bound.UNKNOWN_YET;
    }
    return published >= PUBLISHED && published != Bound.UNLIMITED ? WITHIN : published;
  }

  /** Whether a floor of the query comes from the end of time. */
  static boolean isEnd(long floor) {
    return floor >= WITHIN - FARTHEST_MICROS && floor != Bound.UNLIMITED;
  }

  /** A floor of the query, as sinks and tasks are told. */
  public static long published(long floor) {
    return isEnd(floor) ? PUBLISHED : Math.min(floor, PUBLISHED - 1);
  }
}

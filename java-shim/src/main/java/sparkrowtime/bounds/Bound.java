package sparkrowtime.bounds;

/**
 * What is promised about the later values of a timestamp column: none below {@code floor}
 * (microseconds since the epoch, UTC).
 *
 * @param floor the least later value; {@link #UNKNOWN_YET} where the stream has promised nothing
 *     yet; {@link #UNLIMITED} where only ordinary sources feed the column
 * @param mixed an ordinary source, one without bounds, feeds the column too
 * @param speaks a rowtime stream marked {@code punctuate} is among those that feed it
 */
public record Bound(long floor, boolean mixed, boolean speaks) {
  public static final long UNKNOWN_YET = Long.MIN_VALUE;
  public static final long UNLIMITED = Long.MAX_VALUE;
  public static final Bound ORDINARY = new Bound(UNLIMITED, true, false);

  static Bound of(long floor) {
    return new Bound(floor, false, false);
  }

  /** The weakest of several inputs that are merged. */
  public Bound weakest(Bound other) {
    return new Bound(Math.min(floor, other.floor), mixed || other.mixed, speaks || other.speaks);
  }

  Bound withFloor(long moved) {
    return new Bound(moved, mixed, speaks);
  }

  public boolean isOrdinary() {
    return mixed && floor == UNLIMITED;
  }

  public boolean isKnown() {
    return floor != UNKNOWN_YET && floor != UNLIMITED;
  }

  /** True where the floor alone may be told to consumers. */
  public boolean isPromise() {
    return isKnown() && (!mixed || speaks);
  }

  /** The largest watermark in ms that closes no window which a later row may still fall into. */
  public long windowMs() {
    return isKnown() ? Math.floorDiv(floor, 1000L) : floor;
  }

  /** The largest watermark in ms below every later value, for operators that drop {@code <= W}. */
  public long rawMs() {
    return isKnown() ? Math.floorDiv(floor - 1, 1000L) : floor;
  }
}

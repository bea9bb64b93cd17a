package sparkrowtime.bounds;

/**
 * The promise about the later values of a timestamp column: none is below {@code floor} (microseconds
 * since the epoch, UTC).
 *
 * @param floor the least later value; {@link #UNKNOWN_YET} if the stream has promised nothing yet;
 *     {@link #UNLIMITED} if only ordinary sources feed the column
 * @param mixed whether an ordinary source, which has no bounds, feeds the column too
 * @param punctuates whether a rowtime stream with option {@code punctuate} is among those that feed it
 */
public record Bound(long floor, boolean mixed, boolean punctuates) {
  public static final long UNKNOWN_YET = Long.MIN_VALUE;
  public static final long UNLIMITED = Long.MAX_VALUE;
  public static final Bound ORDINARY = new Bound(UNLIMITED, true, false);

  static Bound of(long floor) {
    return new Bound(floor, false, false);
  }

  /** The bound of two inputs that are merged: the weaker of both. */
  public Bound weakest(Bound other) {
    return new Bound(Math.min(floor, other.floor), mixed || other.mixed, punctuates || other.punctuates);
  }

  Bound withFloor(long moved) {
    return new Bound(moved, mixed, punctuates);
  }

  public boolean isOrdinary() {
    return mixed && floor == UNLIMITED;
  }

  public boolean isKnown() {
    return floor != UNKNOWN_YET && floor != UNLIMITED;
  }

  /** Whether the floor may be published to consumers. */
  public boolean isPromise() {
    return isKnown() && (!mixed || punctuates);
  }

  /** The largest watermark in ms that closes no window into which a later row may fall. */
  public long windowMs() {
    return isKnown() ? Math.floorDiv(floor, 1000L) : floor;
  }

  /** The largest watermark in ms below every later value, for operators that drop {@code <= W}. */
  public long rawMs() {
    return isKnown() ? Math.floorDiv(floor - 1, 1000L) : floor;
  }
}

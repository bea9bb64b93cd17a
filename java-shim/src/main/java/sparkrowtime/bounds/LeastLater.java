package sparkrowtime.bounds;

import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.function.LongUnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TruncTimestamp;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampType;

/**
 * The least value of a rounding of local time for any time at or after a floor. date_trunc and a cast to
 * DATE are not monotonic where clocks go back by a step that is not aligned to the unit: in
 * Pacific/Chatham, 03:45 is followed by 02:45, so the hour of 03:00 is followed by that of 02:00. The
 * zone's rules say when this happens.
 *
 * <p>Law: between two transitions of the zone, a rounding first has its value at the earlier transition,
 * if that value is not later than the transition, and then boundaries of the unit, which are later than
 * the transition and increase. So it is enough to look at the floor and at the transitions above it. The
 * result does not decrease when the floor rises.
 */
final class LeastLater {
  /** No time rounds to a value that is so much earlier: a year, and the largest difference between offsets. */
  private static final long FARTHEST_DAYS = 370;

  private LeastLater() {}

  /** Whether {@code e} is a rounding of a timestamp's local time. */
  static boolean rounds(Expression e) {
    return e instanceof TruncTimestamp || isToDate(e);
  }

  /**
   * @param rounding the expression; only its zone and type are used
   * @param value the value of the expression at a time in microseconds
   * @param floor the least later time
   */
  static long from(Expression rounding, LongUnaryOperator value, long floor) {
    ZoneRules rules = zone(rounding).getRules();
    LongUnaryOperator least =
        isToDate(rounding) ? value : micros -> Math.min(micros, value.applyAsLong(micros));
    Instant last = at(floor).plus(FARTHEST_DAYS, ChronoUnit.DAYS);
    long found = least.applyAsLong(floor);
    for (Instant t = next(rules, at(floor)); t != null && t.isBefore(last); t = next(rules, t)) {
      found = Math.min(found, least.applyAsLong(micros(t)));
    }
    return found;
  }

  private static boolean isToDate(Expression e) {
    return e instanceof Cast cast
        && cast.child().dataType() instanceof TimestampType
        && cast.dataType() instanceof DateType;
  }

  private static ZoneId zone(Expression e) {
    return e instanceof TruncTimestamp trunc ? trunc.zoneId() : ((Cast) e).zoneId();
  }

  private static Instant at(long micros) {
    return Instant.EPOCH.plus(micros, ChronoUnit.MICROS);
  }

  /** ChronoUnit.MICROS.between counts nanoseconds, which overflow after the year 2262. */
  private static long micros(Instant time) {
    return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000L), time.getNano() / 1_000);
  }

  private static Instant next(ZoneRules rules, Instant from) {
    ZoneOffsetTransition transition = rules.nextTransition(from);
    return transition == null ? null : transition.getInstant();
  }
}

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
 * The least value that a rounding of local time gives for any time from a floor on. date_trunc and a
 * cast to DATE are not monotonic where clocks go back by a step that is not aligned to the unit: in
 * Pacific/Chatham, 03:45 is followed by 02:45, so the hour of 03:00 is followed by that of 02:00. The
 * zone's rules say when.
 *
 * <p>Law: between two transitions of the zone a rounding gives its value at the first of them, if that
 * is not later than the transition, and then boundaries of the unit, which are later than the
 * transition and increase. So the floor and the transitions above it are all that has to be looked at.
 * The result does not decrease with the floor.
 */
final class LeastLater {
  /** No time rounds to a value below a floor which is that much earlier: a year, and what offsets differ by. */
  private static final long FARTHEST_DAYS = 370;

  private LeastLater() {}

  /** Whether {@code e} is a rounding of a timestamp's local time. */
  static boolean rounds(Expression e) {
    return e instanceof TruncTimestamp || isToDate(e);
  }

  /**
   * @param rounding the expression, whose zone and type count
   * @param value its value at a time in microseconds
   * @param floor the least later time
   */
  static long from(Expression rounding, LongUnaryOperator value, long floor) {
    ZoneRules rules = zone(rounding).getRules();
    LongUnaryOperator least =
        isToDate(rounding) ? value : micros -> Math.min(micros, value.applyAsLong(micros));
    Instant last = at(floor).plus(FARTHEST_DAYS, ChronoUnit.DAYS);
    long found = least.applyAsLong(floor);
    for (Instant t = next(rules, at(floor)); t != null && t.isBefore(last); t = next(rules, t)) {
      found = Math.min(found, least.applyAsLong(ChronoUnit.MICROS.between(Instant.EPOCH, t)));
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

  private static Instant next(ZoneRules rules, Instant from) {
    ZoneOffsetTransition transition = rules.nextTransition(from);
    return transition == null ? null : transition.getInstant();
  }
}

package sparkrowtime.bounds;

import java.time.ZoneId;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.CalendarInterval;
import sparkrowtime.support.Scala;

/**
 * The expressions that are known to be non-decreasing in one argument, at least between the transitions
 * of a zone ({@link LeastLater}). Spark does not mark such expressions, so this class lists them;
 * tests/spark/test_shim_zones.py compares each entry with its values in zones with odd transitions.
 *
 * <p>Law: an expression that is not on the list has no bound. In a zone with transitions, adding a day is
 * not on the list (if clocks go forward on the next day, 02:30 + 1 day is 03:30, but 03:10 + 1 day is
 * 03:10). Adding a month never is. The other arguments of an expression are the same in every batch.
 */
public final class Monotonic {
  private static final long DAY = 86_400_000_000L;
  private static final Set<String> CLOCK_UNITS =
      Set.of("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR");
  private static final Set<String> DAY_UNITS = Set.of("DAY", "DAYOFYEAR", "WEEK");

  private Monotonic() {}

  /** The index of the argument in which {@code e} is non-decreasing if the others are fixed; -1 if none. */
  public static int argument(Expression e) {
    if (e instanceof Alias || e instanceof PreciseTimestampConversion || e instanceof KnownNotNull) {
      return 0;
    } else if (e instanceof Cast cast) {
      return keepsOrder(cast) ? 0 : -1;
    } else if (e instanceof TruncTimestamp) {
      return fixed(e, 1);
    } else if (e instanceof TruncDate) {
      return fixed(e, 0);
    } else if (e instanceof TimestampAddInterval add) {
      return addsInOrder(add) ? 0 : -1;
    } else if (e instanceof TimestampAdd add) {
      return addsInOrder(add) ? fixed(add, 1) : -1;
    } else if ((e instanceof Add || e instanceof Subtract) && e.dataType() instanceof LongType) {
      return fixed(e, 0);
    }
    return -1;
  }

  /** The time zone in which {@code e} computes its value; null if its value is the same in all zones. */
  public static ZoneId zone(Expression e) {
    if (e instanceof TruncTimestamp trunc) {
      return trunc.zoneId();
    } else if (e instanceof Cast cast && keepsOrder(cast)) {
      return cast.child().dataType().equals(cast.dataType()) ? null : cast.zoneId();
    } else if (e instanceof TimestampAddInterval add) {
      return addsInOrder(add) && !isBelowDay(add) ? add.zoneId() : null;
    } else if (e instanceof TimestampAdd add) {
      return DAY_UNITS.contains(unit(add)) ? add.zoneId() : null;
    }
    return null;
  }

  private static int fixed(Expression e, int moving) {
    for (int i = 0; i < e.children().size(); i++) {
      if (i != moving && !isConstant(e.children().apply(i))) {
        return -1;
      }
    }
    return moving;
  }

  /**
   * True for literals and deterministic functions of them. Spark also calls expressions foldable whose
   * value differs between batches or runs: the current time, session variables, user-defined functions.
   */
  public static boolean isConstant(Expression e) {
    boolean deterministic = e.foldable() && e.deterministic();
    return deterministic && Scala.list(e.collectLeaves()).stream().allMatch(Literal.class::isInstance)
        && !e.exists(Scala.function(part -> part instanceof UserDefinedExpression));
  }

  private static boolean keepsOrder(Cast cast) {
    return isTime(cast.child().dataType()) && isTime(cast.dataType());
  }

  private static boolean isTime(DataType type) {
    return type instanceof TimestampType || type instanceof DateType;
  }

  private static boolean addsInOrder(TimestampAddInterval add) {
    boolean constant = add.dataType() instanceof TimestampType && isConstant(add.right());
    return constant && (isBelowDay(add) || isFixed(add.zoneId()) && !addsMonths(add));
  }

  /** Whether {@code add} adds less than a day, a constant. Such a sum is the same in all zones. */
  public static boolean isBelowDay(TimestampAddInterval add) {
    Object interval = isConstant(add.right()) ? add.right().eval(InternalRow.empty()) : null;
    return interval instanceof CalendarInterval c && c.months == 0 && c.days == 0
        || interval instanceof Long micros && Math.abs(micros) < DAY;
  }

  private static boolean addsMonths(TimestampAddInterval add) {
    Object interval = add.right().eval(InternalRow.empty());
    return !(interval instanceof Long || interval instanceof CalendarInterval c && c.months == 0);
  }

  private static boolean addsInOrder(TimestampAdd add) {
    return add.dataType() instanceof TimestampType
        && (CLOCK_UNITS.contains(unit(add)) || DAY_UNITS.contains(unit(add)) && isFixed(add.zoneId()));
  }

  private static String unit(TimestampAdd add) {
    return add.unit().toUpperCase(Locale.ROOT);
  }

  private static boolean isFixed(ZoneId zone) {
    return zone.getRules().isFixedOffset();
  }
}

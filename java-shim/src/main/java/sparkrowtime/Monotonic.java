package sparkrowtime;

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

/**
 * Which expressions are known to be non-decreasing in one argument. Spark marks nothing as such, so
 * the list is ours; each entry was checked over a year in zones with summer time.
 *
 * <p>Law: when in doubt it is not monotonic. Adding a day is not, in a zone with summer time
 * (02:30 + 1 day is 03:30 on the day after a spring night, 03:10 + 1 day is 03:10); adding a month
 * never is.
 */
final class Monotonic {
  private static final long DAY = 86_400_000_000L;
  private static final Set<String> CLOCK_UNITS =
      Set.of("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR");
  private static final Set<String> DAY_UNITS = Set.of("DAY", "DAYOFYEAR", "WEEK");

  private Monotonic() {}

  /** The index of the argument that {@code e} is non-decreasing in, all others fixed; -1 if none. */
  static int argument(Expression e) {
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

  private static int fixed(Expression e, int moving) {
    for (int i = 0; i < e.children().size(); i++) {
      if (i != moving && !e.children().apply(i).foldable()) {
        return -1;
      }
    }
    return moving;
  }

  private static boolean keepsOrder(Cast cast) {
    return isTime(cast.child().dataType()) && isTime(cast.dataType());
  }

  private static boolean isTime(DataType type) {
    return type instanceof TimestampType || type instanceof DateType;
  }

  private static boolean addsInOrder(TimestampAddInterval add) {
    if (!(add.dataType() instanceof TimestampType) || !add.right().foldable()) {
      return false;
    }
    Object interval = add.right().eval(InternalRow.empty());
    if (interval instanceof CalendarInterval c) {
      return c.months == 0 && (c.days == 0 || isFixed(add.zoneId()));
    }
    return interval instanceof Long micros && (Math.abs(micros) < DAY || isFixed(add.zoneId()));
  }

  private static boolean addsInOrder(TimestampAdd add) {
    String unit = add.unit().toUpperCase(Locale.ROOT);
    return add.dataType() instanceof TimestampType
        && (CLOCK_UNITS.contains(unit) || DAY_UNITS.contains(unit) && isFixed(add.zoneId()));
  }

  private static boolean isFixed(ZoneId zone) {
    return zone.getRules().isFixedOffset();
  }
}

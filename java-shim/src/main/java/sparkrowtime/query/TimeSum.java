package sparkrowtime.query;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.CalendarInterval;

/**
 * The value of an expression in a join's condition, in microseconds: the sum of the times {@code plus},
 * minus the times {@code minus}, plus a value between {@code least} and {@code most}. Numbers are seconds,
 * as in a cast between a number and a timestamp. {@code least} and {@code most} differ if a conversion
 * rounds, or if a calendar day is added, which is not always 24 hours long.
 *
 * <p>Law: the list of expressions is closed. Any other expression has no sum.
 */
record TimeSum(List<Attribute> plus, List<Attribute> minus, long least, long most) {
  private static final long SECOND_MICROS = 1_000_000L;
  private static final long DAY_MICROS = 86_400 * SECOND_MICROS;

  /** More than the difference between any two offsets of a zone. */
  private static final long ZONE_MARGIN_MICROS = 2 * DAY_MICROS;

  /** More than the distance between adjacent doubles that are seconds of the years up to 9999. */
  private static final long DOUBLE_ERROR_MICROS = 100;

  /** The last second of the year 9999. Doubles beyond it are farther from each other. */
  private static final BigDecimal LAST_SECOND = BigDecimal.valueOf(253_402_300_799L);

  private static final int MICROS_SCALE = 6;

  /** Earlier than all times: 0001-01-01. */
  private static final long EVER = -62_135_596_800L * SECOND_MICROS;

  /**
   * @param from a lower bound of the times of the expression that matter
   * @return null if the expression is not on the list
   */
  static TimeSum of(Expression e, long from) {
    try {
      return sum(e, from);
    } catch (ArithmeticException overflow) {
      return null;
    }
  }

  /** The sum of an expression for those of its times for which it can be {@code value} or more. */
  static TimeSum reaching(Expression e, long value) {
    TimeSum any = of(e, EVER);
    try {
      return any == null ? null : of(e, Math.subtractExact(value, any.most()));
    } catch (ArithmeticException overflow) {
      return null;
    }
  }

  /**
   * {@code larger - smaller}, for those times of {@code smaller} for which it can be as large as a value of
   * {@code larger}; null if one of them has no sum.
   *
   * @param from a lower bound of the times of {@code larger}
   */
  static TimeSum difference(Expression larger, Expression smaller, long from) {
    TimeSum first = of(larger, from);
    try {
      TimeSum second = first == null ? null : reaching(smaller, first.leastFrom(from));
      return second == null ? null : first.plus(second.negated());
    } catch (ArithmeticException overflow) {
      return null;
    }
  }

  /** True if the sum is this time, plus or minus a constant. */
  boolean isOf(Attribute time) {
    return minus.isEmpty() && plus.size() == 1 && time != null && plus.get(0).exprId().equals(time.exprId());
  }

  /** True if the sum is the difference between these two times, plus or minus a constant. */
  boolean isBetween(Attribute later, Attribute earlier) {
    return new TimeSum(plus, List.of(), 0, 0).isOf(later) && new TimeSum(minus, List.of(), 0, 0).isOf(earlier);
  }

  private static TimeSum sum(Expression e, long from) {
    if (e.foldable()) {
      return constant(e);
    } else if (e instanceof Attribute a) {
      return a.dataType() instanceof TimestampType ? new TimeSum(List.of(a), List.of(), 0, 0) : null;
    } else if (e instanceof Cast cast) {
      return converted(cast, from);
    } else if (e instanceof TimestampAddInterval add) {
      return added(add, from);
    } else if (e instanceof Add add && isNumber(e.dataType())) {
      return calculated(added(sum(add.left(), from), sum(add.right(), from)), e.dataType());
    } else if (e instanceof Subtract minus && isNumber(e.dataType())) {
      TimeSum right = sum(minus.right(), from);
      return calculated(added(sum(minus.left(), from), right == null ? null : right.negated()), e.dataType());
    }
    return null;
  }

  private static TimeSum added(TimeSum one, TimeSum other) {
    return one == null || other == null ? null : one.plus(other);
  }

  private static TimeSum constant(Expression e) {
    Object value = e.eval(InternalRow.empty());
    if (value instanceof Long micros && e.dataType() instanceof TimestampType) {
      return of(micros, micros);
    }
    BigDecimal seconds = value != null && e.dataType() instanceof NumericType ? decimal(value) : null;
    boolean counts = seconds != null && isInRange(seconds);
    return counts ? of(micros(seconds, RoundingMode.FLOOR), micros(seconds, RoundingMode.CEILING)) : null;
  }

  /** Whether the double nearest to this number of seconds, and to its sum with a time, is as close as the law says. */
  private static boolean isInRange(BigDecimal seconds) {
    return seconds.abs().compareTo(LAST_SECOND) <= 0;
  }

  private static BigDecimal decimal(Object number) {
    if (number instanceof Decimal decimal) {
      return decimal.toJavaBigDecimal();
    }
    boolean isFinite = !(number instanceof Number n) || Double.isFinite(n.doubleValue());
    return isFinite ? new BigDecimal(number.toString()) : null;
  }

  private static long micros(BigDecimal seconds, RoundingMode mode) {
    return seconds.movePointRight(MICROS_SCALE).setScale(0, mode).longValueExact();
  }

  private static TimeSum of(long least, long most) {
    return new TimeSum(List.of(), List.of(), least, most);
  }

  /**
   * Conversions between timestamps and numbers of seconds. Types that overflow or lose whole seconds are not
   * on the list.
   */
  private static TimeSum converted(Cast cast, long from) {
    DataType type = cast.child().dataType();
    boolean listed = isListed(type) && isListed(cast.dataType());
    TimeSum child = listed ? sum(cast.child(), from) : null;
    if (child == null || type instanceof LongType) {
      return child;
    } else if (type instanceof TimestampType && cast.dataType() instanceof LongType) {
      return child.plus(of(1 - SECOND_MICROS, 0));
    }
    return child.give(Math.max(error(type), error(cast.dataType())));
  }

  private static boolean isListed(DataType type) {
    return type instanceof TimestampType || isNumber(type);
  }

  private static boolean isNumber(DataType type) {
    return type instanceof LongType || type instanceof DoubleType || type instanceof DecimalType;
  }

  /** A sum of whole numbers is exact. Other results are rounded to their type. */
  private static TimeSum calculated(TimeSum sum, DataType type) {
    return sum == null || type instanceof LongType ? sum : sum.give(error(type));
  }

  /** The largest error of a conversion to or from a type. The conversion may go through a double. */
  private static long error(DataType type) {
    if (type instanceof LongType) {
      return SECOND_MICROS;
    } else if (type instanceof DecimalType decimal) {
      int lost = Math.max(0, MICROS_SCALE - decimal.scale());
      return Math.addExact(BigDecimal.TEN.pow(lost).longValueExact(), DOUBLE_ERROR_MICROS);
    }
    return type instanceof DoubleType ? DOUBLE_ERROR_MICROS : 0;
  }

  private static TimeSum added(TimestampAddInterval add, long from) {
    Object interval = add.interval().foldable() ? add.interval().eval(InternalRow.empty()) : null;
    if (interval instanceof Long micros) {
      return added(add, from, micros / DAY_MICROS, micros % DAY_MICROS);
    }
    return interval instanceof CalendarInterval c && c.months == 0 ? added(add, from, c.days, c.microseconds) : null;
  }

  /** Days are calendar days in the session's time zone, in whatever unit the user wrote them. */
  private static TimeSum added(TimestampAddInterval add, long from, long days, long micros) {
    long shift = Math.addExact(Math.multiplyExact(days, DAY_MICROS), micros);
    TimeSum child = sum(add.start(), from);
    TimeSum moved = child == null ? null : child.plus(of(shift, shift));
    if (moved == null || days == 0) {
      return moved;
    }
    long start = Math.min(child.leastFrom(from), moved.leastFrom(from)) - ZONE_MARGIN_MICROS;
    return moved.give(ZoneOffsets.largestChange(add.zoneId(), start));
  }

  /** A lower bound of the sum if {@code from} is one of its times. */
  private long leastFrom(long from) {
    boolean ofOne = minus.isEmpty() && plus.size() <= 1;
    return !ofOne ? EVER : plus.isEmpty() ? least : Math.addExact(from, least);
  }

  private TimeSum plus(TimeSum other) {
    return new TimeSum(
        joined(plus, other.plus),
        joined(minus, other.minus),
        Math.addExact(least, other.least),
        Math.addExact(most, other.most));
  }

  private static List<Attribute> joined(List<Attribute> one, List<Attribute> other) {
    return Stream.concat(one.stream(), other.stream()).toList();
  }

  private TimeSum negated() {
    return new TimeSum(minus, plus, Math.negateExact(most), Math.negateExact(least));
  }

  private TimeSum give(long error) {
    return new TimeSum(plus, minus, Math.subtractExact(least, error), Math.addExact(most, error));
  }
}

package sparkrowtime.support;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.regex.Pattern;

/** How values are shown in errors. */
public final class Shown {
  private static final int CHARACTERS = 1000;
  private static final Pattern MICROS = Pattern.compile("\\b(\\d{1,18})L\\b");
  private static final List<Unit> UNITS =
      List.of(
          new Unit("day", 86_400_000_000L),
          new Unit("hour", 3_600_000_000L),
          new Unit("minute", 60_000_000L),
          new Unit("second", 1_000_000L),
          new Unit("millisecond", 1_000L),
          new Unit("microsecond", 1L));

  private Shown() {}

  /** The text, or its beginning and how long it is. */
  public static String of(String text) {
    return text.length() <= CHARACTERS
        ? text
        : text.substring(0, CHARACTERS) + "... (" + text.length() + " characters)";
  }

  /** A time in microseconds. */
  public static String time(long micros) {
    return Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString();
  }

  /** The text with each literal of microseconds, such as {@code 600000000L}, as an interval: {@code 10 minutes}. */
  public static String intervals(String text) {
    return MICROS.matcher(text).replaceAll(found -> interval(Long.parseLong(found.group(1))));
  }

  /** So many microseconds, in the largest unit that divides them. */
  private static String interval(long micros) {
    Unit unit = UNITS.stream().filter(u -> micros % u.micros() == 0 && (micros > 0 || u.micros() == 1)).findFirst().get();
    long count = micros / unit.micros();
    return count + " " + unit.name() + (count == 1 ? "" : "s");
  }

  private record Unit(String name, long micros) {}
}

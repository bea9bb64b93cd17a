package sparkrowtime.tables;

import java.time.DateTimeException;
import java.time.Instant;
import java.util.regex.Pattern;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Shown;

/** What a commit of a table says about itself, as far as bounds need it. Its properties are the same in tables of each format. */
abstract class TableCommit {
  /** Who writes bounds, where it is a drain. */
  static final String DRAIN = "a drain";

  static final String BOUND = "rowtime.bound";
  static final String QUERY = "rowtime.query";
  static final String BATCH = "rowtime.batch";
  static final String POSITION = "rowtime.position";

  /** The form of a bound's time. {@code Instant} takes others, too, which the readers in Python do not. */
  private static final Pattern TIME =
      Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:(?!60)[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})");

  /** The last legal rowtime, in microseconds; the first one is 1. */
  private static final long LARGEST = 253_402_300_799_999_998L;

  /** A property of the commit; null if it does not have it. */
  abstract String said(String key);

  /** Where it is, for messages. */
  abstract String place();

  /** Its name in the table's history. */
  abstract String operation();

  /** When it was made, by the clock of its writer, in microseconds; null where it does not say so. */
  abstract Long time();

  /** The text that tells the commit from one of another table at the same place. */
  abstract String text();

  /** Whether it has put other rows in the place of all that were there. */
  boolean replaces() {
    return false;
  }

  /** Whether it has brought back the rows of an earlier commit. */
  boolean isRestore() {
    return false;
  }

  /** Whether rows of commits before it are no longer in the table. */
  final boolean takesBack() {
    return isRestore() || replaces();
  }

  /**
   * The name that a column had before this commit, by which earlier commits name it.
   *
   * @param column its name after the commit, a path such as {@code window.end}
   * @return null where there was no such column
   */
  String before(String column) {
    return column;
  }

  /** The floor in microseconds that it promises; null without one. */
  Long floor() {
    String bound = said(BOUND);
    if (bound == null) {
      return null;
    }
    long micros = timeOf(bound);
    return "true".equals(said("rowtime.strict")) ? micros + 1 : micros;
  }

  private long timeOf(String bound) {
    DateTimeException why = null;
    try {
      long micros = TIME.matcher(bound).matches() ? micros(Instant.parse(bound)) : 0;
      if (micros >= 1 && micros <= LARGEST) {
        return micros;
      }
    } catch (DateTimeException e) {
      why = e;
    }
    throw new IllegalStateException(
        place() + " has " + BOUND + "=" + Shown.of(bound) + ", which is no time after 1970 in ISO 8601 with seconds and a"
            + " zone, such as 2026-01-05T10:00:00Z. So up to where the table is complete is not known. Let its writer commit"
            + " a time of this form from now on, and start a new query behind that commit.", why);
  }

  /** Microseconds since 1970, up to the year 9999: {@code ChronoUnit.between} counts nanoseconds, which end in 2262. */
  static long micros(Instant time) {
    return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000), time.getNano() / 1_000);
  }

  /** The column that a query has said, without its backticks; a drain writes that of the stream. Null if it is not said. */
  String column() {
    String said = said("rowtime.column");
    String column = said != null ? said.replace("`", "") : said(POSITION) != null ? Rowtime.COLUMN : "";
    return column.isEmpty() ? null : column;
  }

  /** The query that has written it, by its id, or {@link #DRAIN}; null if it has properties of neither. */
  final String writer() {
    return said(QUERY) != null ? said(QUERY) : said(POSITION) != null ? DRAIN : null;
  }

  /** Whether a batch of this query has written it, with bounds or without. */
  boolean isOf(String query) {
    return query.equals(said(QUERY));
  }

  /** The batch of the query that has written it; -1 where it is of none. */
  long batch() {
    String batch = said(BATCH);
    return batch != null && batch.matches("\\d{1,18}") ? Long.parseLong(batch) : -1;
  }
}

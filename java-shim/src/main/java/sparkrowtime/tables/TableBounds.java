package sparkrowtime.tables;

import static sparkrowtime.tables.CommitLog.NEW_QUERY;
import static sparkrowtime.tables.CommitLog.NONE;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import sparkrowtime.support.Shown;

/**
 * The bounds in the commits of a table. A commit is read once: the bound at the last ones is remembered. Used in the query's
 * thread.
 *
 * <p>Law: the floor behind a commit is that of the newest one up to it that has one, as far as its rows are there: a RESTORE
 * leads to the version that it names. From commit to commit it does not fall; a table whose floor would is refused. So is
 * one whose commits are not all in its log, a bound that says to be about another column, and bounds of two writers, of which
 * each promises for itself alone.
 */
public final class TableBounds {
  private static final int MOST_KNOWN = 16;

  private final CommitLog log;
  private final String column;
  private final Map<Long, Known> known = new LinkedHashMap<>();
  private boolean cleaned;

  /** What is known of a commit: the floor behind it and who has promised it, and its text. */
  private record Known(Long floor, String writer, String text) {}

  /**
   * @param column the column of the table that is asked for; null for a time that is computed
   */
  public TableBounds(CommitLog log, String column) {
    this.log = log;
    this.column = column;
  }

  /** The floor behind all rows of the commits up to one, in microseconds; null if none of them promises one. */
  public Long floorBehind(long number) {
    if (number < 0) {
      return null;
    }
    Known found = known.get(number);
    if (found == null) {
      found = read(number);
      known.put(number, found);
    }
    if (known.size() > MOST_KNOWN) {
      known.remove(known.keySet().iterator().next());
    }
    return found.floor();
  }

  /**
   * From here on, a query reads the rows of each commit itself.
   *
   * @param number the commit before; {@link CommitLog#NONE} for the first one of the table
   */
  public void begin(long number) {
    floorBehind(number);
    known.putIfAbsent(number, new Known(null, null, ""));
  }

  /** From the nearest commit before that is known; from none, back to one that has a bound. */
  private Known read(long number) {
    Deque<Long> path = new ArrayDeque<>();
    long from = number;
    while (from >= 0 && !known.containsKey(from)) {
      path.push(from);
      from = log.before(from);
    }
    return known.containsKey(from) ? goneOn(from, path) : lookedBack(number);
  }

  /** Whether a commit that could have had a bound was no longer in the log. */
  public boolean isCleaned() {
    return cleaned;
  }

  private Known lookedBack(long number) {
    String text = "";
    String asked = column;
    for (long at = number; at != NONE; ) {
      TableCommit commit = log.commit(at);
      if (commit == null) {
        log.requireCleaned(at);
        cleaned = true;
        return new Known(null, null, text);
      }
      text = at == number ? commit.text() : text;
      requireColumn(at, commit, asked);
      String before = asked == null ? null : commit.before(asked);
      if (commit.floor() != null || commit.replaces()) {
        return new Known(commit.floor(), commit.writer(), text);
      } else if (before == null && asked != null) {
        return new Known(null, null, text);
      }
      asked = before;
      at = log.origin(at, commit);
    }
    return new Known(null, null, text);
  }

  private Known goneOn(long from, Iterable<Long> path) {
    Known last = known.get(from);
    log.requireSame(from, last.text());
    for (long at : path) {
      TableCommit commit = log.commit(at);
      if (commit == null) {
        log.requireCleaned(at);
        last = new Known(last.floor(), last.writer(), "");
      } else {
        requireColumn(at, commit, column);
        last = behind(at, commit, last);
      }
    }
    return last;
  }

  private Known behind(long at, TableCommit commit, Known before) {
    if (before.floor() != null) {
      requireGoesOn(at, commit, before);
    }
    return commit.floor() == null
        ? new Known(before.floor(), before.writer(), commit.text())
        : new Known(commit.floor(), commit.writer(), commit.text());
  }

  private void requireGoesOn(long at, TableCommit commit, Known before) {
    String table = log.named(at);
    String last = Shown.time(before.floor());
    log.requireGoesOn(at, commit, before.floor());
    if (column != null && !column.equals(commit.before(column))) {
      throw new IllegalStateException(
          "DataLostError: " + table + " (" + commit.operation() + ") has given the name " + column + " to another column, or to"
              + " none. The bounds before it are about the former one. " + NEW_QUERY);
    } else if (commit.floor() != null && commit.floor() < before.floor()) {
      throw new IllegalStateException(
          "DataLostError: the bound of " + log.table().name() + " has gone back from " + last + " to " + Shown.time(commit.floor())
              + " in " + log.unit() + " " + at + ": another drain or query writes to it. The results of this query up to the"
              + " former bound are final. " + NEW_QUERY);
    } else if (commit.floor() != null && isAnother(before.writer(), commit.writer())) {
      throw new IllegalStateException(
          "DataLostError: " + table + " has a bound by " + named(commit.writer()) + ", and the one before is by "
              + named(before.writer()) + ". Each promises for itself alone, so up to where the table is complete is not known."
              + " Let one of them write to another table. " + NEW_QUERY);
    }
  }

  private static boolean isAnother(String one, String other) {
    return one != null && other != null && !one.equals(other);
  }

  /** A query by its id, or a drain. */
  static String named(String writer) {
    return writer.equals(TableCommit.DRAIN) ? writer : "query " + writer;
  }

  private void requireColumn(long version, TableCommit commit, String asked) {
    if (commit.floor() != null && commit.column() != null && !commit.column().equalsIgnoreCase(asked)) {
      throw new IllegalArgumentException(
          "The bound in " + log.named(version) + " is about its column " + commit.column() + ", and"
              + " punctuate is over " + (asked == null ? "a time that is computed" : "its column " + asked) + ". Call it on "
              + commit.column() + ", and compute other times from that above it.");
    }
  }
}

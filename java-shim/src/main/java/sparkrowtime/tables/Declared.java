package sparkrowtime.tables;

import java.io.Serializable;

/**
 * What a user declares of a table in whose commits nobody writes bounds. One of the two is there at least.
 *
 * <p>Law: what it takes for true of later commits is later, or the same, where a time that it is given is later.
 *
 * @param lateness how far a row may lie below the largest one before it, in microseconds; null where times of rows say nothing
 * @param delay how long after its time a row may be committed, in microseconds; null where times of commits say nothing
 */
public record Declared(Long lateness, Long delay) implements Serializable {
  /** What is declared; null for nothing. */
  public static Declared of(Long lateness, Long delay) {
    return lateness == null && delay == null ? null : new Declared(lateness, delay);
  }

  /** Whether times of rows are needed, which the statistics of files have. */
  public boolean isOfRows() {
    return lateness != null;
  }

  /** Whether times of commits are needed. */
  boolean isOfCommits() {
    return delay != null;
  }

  /**
   * The floor behind a commit; null for none.
   *
   * @param largest the largest time of its rows; null where it is not known
   * @param committed when it was made; null where that is not known
   */
  Long floor(Long largest, Long committed) {
    return later(less(largest, lateness), less(committed, delay));
  }

  private static Long less(Long time, Long by) {
    return time == null || by == null || time <= by ? null : Long.valueOf(time - by);
  }

  /** The later of two times, of which each may be null. */
  static Long later(Long one, Long other) {
    return one == null || other != null && other > one ? other : one;
  }
}

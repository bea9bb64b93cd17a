package sparkrowtime.tables;

import static sparkrowtime.tables.TableBounds.named;

import sparkrowtime.tables.CommitLog.Numbered;

/**
 * The query that writes bounds into a table. The formats let two of them append at the same time. So each looks for commits
 * of the other before it writes a batch. Used in the query's thread.
 *
 * <p>Law: a query whose table has bounds of another one, or a drain, since its own last commit is refused before its next
 * batch. So is one whose last batch is no longer in the table, since the bound would promise rows that are missing.
 */
public final class TableWriter {
  private final CommitLog log;
  private final String query;
  private Numbered newest = new Numbered(CommitLog.NONE, null);

  /**
   * @param query the id of the query
   */
  public TableWriter(CommitLog log, String query) {
    this.log = log;
    this.query = query;
  }

  /**
   * @param batch the number of the batch that will be written
   */
  public void requireAlone(long batch) {
    for (Numbered next : log.since(newest.number())) {
      requireOwn(next.commit());
      newest = next;
    }
    requireInSight(batch, newest.number(), newest.commit());
  }

  private void requireOwn(TableCommit commit) {
    if (commit.writer() != null && !commit.writer().equals(query)) {
      throw new IllegalStateException(
          "ProducerFencedError: " + log.table().name() + " has a bound by " + named(commit.writer()) + ", and this is query "
              + query + ". Each would promise for itself alone. Write to another table, or continue the other query from its"
              + " checkpoint." + log.wayToReplace());
    }
  }

  /** Looks for the newest commit of a writer of bounds among those whose rows a reader sees, from the last commit back. */
  private void requireInSight(long batch, long newestNumber, TableCommit newestCommit) {
    long at = newestNumber;
    boolean wentBack = false;
    TableCommit commit = newestCommit;
    while (commit != null && commit.writer() == null && !commit.replaces()) {
      wentBack |= commit.isRestore();
      at = log.origin(at, commit);
      commit = log.commit(at);
    }
    boolean replaced = commit != null && commit.replaces();
    if (commit != null && !replaced) {
      requireOwn(commit);
    }
    long last = commit == null ? -1 : commit.batch();
    boolean whole = commit != null || at == CommitLog.NONE;
    if (batch > 0 && log.lacks(batch, last, wentBack || replaced, whole)) {
      throw new IllegalStateException(
          "DataLostError: " + log.table().name() + " was set back, or its rows were replaced (RESTORE, rollback, CREATE OR"
              + " REPLACE TABLE, an overwrite), since query " + query + " has written to it. The query goes on with batch "
              + batch + ", so rows before that would be missing below its bound. Set the table to where it was, or start with"
              + " a new checkpointLocation.");
    }
  }
}

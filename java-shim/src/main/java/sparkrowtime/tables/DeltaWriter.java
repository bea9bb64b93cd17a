package sparkrowtime.tables;

import static sparkrowtime.tables.DeltaBounds.named;

/**
 * The query that writes bounds into a Delta table. Delta lets two of them append at the same time. So each looks for commits
 * of the other before it writes a batch. Used in the query's thread.
 *
 * <p>Law: a query whose table has bounds of another one, or a drain, since its own last commit is refused before its next
 * batch. So is one whose last batch is no longer in the table, since the bound would promise rows that are missing.
 */
public final class DeltaWriter {
  private final CommitFiles files;
  private final String query;
  private long newest = -1;

  /**
   * @param query the id of the query
   */
  public DeltaWriter(CommitFiles files, String query) {
    this.files = files;
    this.query = query;
  }

  /**
   * @param batch the number of the batch that will be written
   */
  public void requireAlone(long batch) {
    if (newest < 0) {
      newest = files.newest();
    }
    DeltaCommit last = null;
    for (DeltaCommit next = files.commit(newest + 1); next != null; next = files.commit(newest + 1)) {
      newest++;
      requireOwn(next);
      last = next;
    }
    requireInSight(batch, last == null ? files.commit(newest) : last);
  }

  private void requireOwn(DeltaCommit commit) {
    if (commit.writer() != null && !commit.writer().equals(query)) {
      throw new IllegalStateException(
          "ProducerFencedError: " + files.table() + " has a bound by " + named(commit.writer()) + ", and this is query " + query
              + ". Each would promise for itself alone. Write to another table, or continue the other query from its checkpoint."
              + " If nobody needs the rows that are there, overwrite them all: INSERT OVERWRITE.");
    }
  }

  /** Looks for the newest commit of a writer of bounds among those whose rows a reader sees, from the last commit back. */
  private void requireInSight(long batch, DeltaCommit newestCommit) {
    long at = newest;
    boolean wentBack = false;
    DeltaCommit commit = newestCommit;
    while (commit != null && commit.writer() == null && !commit.replaces()) {
      wentBack |= commit.isRestore();
      at = commit.isRestore() ? commit.restored(at) : at - 1;
      commit = files.commit(at);
    }
    boolean replaced = commit != null && commit.replaces();
    if (commit != null && !replaced) {
      requireOwn(commit);
    }
    long last = commit == null ? -1 : commit.batch();
    if (batch > 0 && (replaced || wentBack) && last < batch - 1) {
      throw new IllegalStateException(
          "DataLostError: " + files.table() + " was set back, or its rows were replaced (RESTORE, CREATE OR REPLACE TABLE, an"
              + " overwrite), since query " + query + " has written to it. The query goes on with batch " + batch + ", so rows"
              + " before that would be missing below its bound. Set the table to where it was, or start with a new"
              + " checkpointLocation.");
    }
  }
}

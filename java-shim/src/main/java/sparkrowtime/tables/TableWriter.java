package sparkrowtime.tables;

import static sparkrowtime.tables.TableBounds.named;

import sparkrowtime.tables.CommitLog.Numbered;

/**
 * The query that writes bounds into a table. The formats let two of them append at the same time. So each looks for commits
 * of the other before it writes a batch. Used in the query's thread.
 *
 * <p>Law: a query whose table has bounds of another one, or a drain, since its own last commit is refused before its next
 * batch. So is one of whose batches any is no longer in the table, since the bound would promise rows that are missing; and
 * one that goes on with a batch that the table has had, since the formats pass by a batch whose number they know.
 */
public final class TableWriter {
  /** The property that tells the rows of a batch from those of another batch of its number: a hash of its end offsets. */
  public static final String OFFSETS = "rowtime.offsets";

  private final CommitLog log;
  private final String query;
  private Numbered newest = new Numbered(CommitLog.NONE, null);

  /**
   * The newest commit of a writer of bounds among those whose rows a reader sees, from a commit back.
   *
   * @param commit null if there is none, or rows were replaced since
   * @param wentBack whether the table was set back, or its rows were replaced
   * @param whole whether all commits back to it, or to the first commit, are there
   * @param undone the largest batch of the query among those that were set back; -1 for none
   */
  private record Found(long number, TableCommit commit, boolean wentBack, boolean whole, long undone) {
    long batch() {
      return commit == null ? -1 : commit.batch();
    }
  }

  /**
   * @param query the id of the query
   */
  public TableWriter(CommitLog log, String query) {
    this.log = log;
    this.query = query;
  }

  /**
   * @param batch the number of the batch that will be written
   * @param offsets what tells its rows from those of another batch of this number
   */
  public void requireAlone(long batch, String offsets) {
    Numbered last = newest;
    if (last.commit() != null) {
      log.requireSame(last.number(), last.commit().text());
    }
    for (Numbered next : log.since(last.number())) {
      requireOwn(next.commit());
      newest = next;
    }
    Found found = found(newest.number(), newest.commit());
    requireAllThere(batch, found);
    requireNew(batch, offsets, found);
    if (found.commit() != null) { // others may have set the table back while the batch was written
      long before = log.origin(found.number(), found.commit());
      requireAllThere(found.batch(), found(before, before == last.number() ? last.commit() : log.commit(before)));
    }
  }

  private void requireOwn(TableCommit commit) {
    if (commit.writer() != null && !commit.writer().equals(query)) {
      throw new IllegalStateException(
          "ProducerFencedError: " + log.table().name() + " has a bound by " + named(commit.writer()) + ", and this is query "
              + query + ". Each would promise for itself alone. Write to another table, or continue the other query from its"
              + " checkpoint." + log.wayToReplace());
    }
  }

  private Found found(long number, TableCommit newest) {
    long at = number;
    long undone = -1;
    boolean wentBack = false;
    TableCommit commit = newest;
    while (commit != null && commit.writer() == null && !commit.isOf(query) && !commit.replaces()) {
      long origin = log.origin(at, commit);
      undone = commit.isRestore() ? Math.max(undone, newestBatch(origin, at)) : undone;
      wentBack |= commit.isRestore();
      at = origin;
      commit = log.commit(at);
    }
    if (commit != null && !commit.isOf(query) && commit.replaces()) {
      return new Found(at, null, true, true, undone);
    } else if (commit != null) {
      requireOwn(commit);
    }
    return new Found(at, commit, wentBack, commit != null || at == CommitLog.NONE, undone);
  }

  /** The largest batch of the query between two commits; -1 for none. */
  private long newestBatch(long first, long last) {
    long batch = -1;
    for (long at = log.before(last); at != first && at != CommitLog.NONE; at = log.before(at)) {
      TableCommit commit = log.commit(at);
      batch = commit != null && commit.isOf(query) ? Math.max(batch, commit.batch()) : batch;
    }
    return batch;
  }

  private void requireAllThere(long batch, Found found) {
    if (batch > 0 && log.lacks(batch, found.batch(), found.wentBack(), found.whole())) {
      throw new IllegalStateException(
          "DataLostError: " + log.table().name() + " was set back, dropped, or its rows were replaced (RESTORE, rollback, CREATE OR"
              + " REPLACE TABLE, an overwrite), since query " + query + " has written to it. The query goes on behind batch "
              + (batch - 1) + ", so rows up to that would be missing below its bound. Set the table to where it was, or start"
              + " with a new checkpointLocation.");
    }
  }

  private void requireNew(long batch, String offsets, Found found) {
    long known = Math.max(found.batch(), found.undone());
    String before = found.batch() == known && known == batch ? found.commit().said(OFFSETS) : offsets;
    if (known > batch || known == batch && (found.batch() < known || before != null && !before.equals(offsets))) {
      throw new IllegalStateException(
          "ProducerFencedError: the checkpoint of query " + query + " is behind " + log.table().name() + ", which has had batch " + known
              + " of it already, and the query goes on with batch " + batch + ". Its sink passes by a batch that it knows, so rows"
              + " would be missing below the bound. Continue from the newest checkpoint, or write to another table with a new"
              + " checkpointLocation.");
    }
  }
}

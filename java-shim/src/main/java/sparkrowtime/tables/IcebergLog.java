package sparkrowtime.tables;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import sparkrowtime.support.ByName;

/**
 * The snapshots of an Iceberg table, as its metadata has them. Iceberg's classes are found by their names: they come with
 * its jar, if at all.
 */
public final class IcebergLog extends CommitLog {
  /** Stands for snapshots that have expired. */
  private static final long EXPIRED = Long.MAX_VALUE;

  private static final int MOST_KNOWN = 16;

  private final Object table;
  private final TableName name;
  private final IcebergColumns columns;
  private final Map<IcebergOffset, Long> passed = new LinkedHashMap<>();

  /**
   * @param table Iceberg's own table
   */
  public IcebergLog(Object table) {
    this.table = table;
    this.name = new TableName(TableName.ICEBERG, (String) ByName.call(table, "name"));
    this.columns = new IcebergColumns(table);
  }

  /** Whether a table of Spark is one of Iceberg. */
  public static boolean isOfSpark(Object table) {
    return ByName.is(table, "org.apache.iceberg.spark.source.SparkTable");
  }

  /** The snapshots of a table of Spark. */
  public static IcebergLog of(Object sparkTable) {
    return new IcebergLog(ByName.call(sparkTable, "table"));
  }

  @Override
  public TableName table() {
    return name;
  }

  @Override
  public String whyCleaned() {
    return "snapshots have expired (expire_snapshots, history.expire.max-snapshot-age-ms)";
  }

  @Override
  String unit() {
    return "snapshot";
  }

  @Override
  IcebergCommit commit(long id) {
    Object snapshot = id == EXPIRED || id < 0 ? null : ByName.call(table, "snapshot", id);
    return snapshot == null ? null : new IcebergCommit(name.name(), snapshot, columns);
  }

  private long added(IcebergCommit commit) {
    return commit.added(ByName.call(table, "io"));
  }

  /** Takes the table as it is now. A plan can have one that was loaded long before. Refuses another one of its name. */
  public void refresh() {
    try {
      ByName.call(table, "refresh");
    } catch (IllegalStateException e) {
      throw createdAgain(e);
    }
  }

  /** Refuses a table whose source has failed, where what others have done with it is the reason. */
  public void requireSound(IcebergOffset read, RuntimeException failure) {
    if (ByName.is(failure, "org.apache.iceberg.exceptions.NoSuchTableException")) {
      throw createdAgain(failure);
    }
    refresh();
    requireFollows(read);
  }

  private IllegalStateException createdAgain(RuntimeException e) {
    return new IllegalStateException(
        "DataLostError: " + name.name() + " is not the table any more that this query has read: it was created again, or dropped ("
            + e.getMessage() + "). " + NEW_QUERY, e);
  }

  private IcebergCommit current() {
    Object snapshot = ByName.call(table, "currentSnapshot");
    return snapshot == null ? null : new IcebergCommit(name.name(), snapshot, columns);
  }

  /** PyIceberg takes the name of a parent that expires away. The first snapshot of a table has all files of the table. */
  @Override
  long before(long id) {
    IcebergCommit commit = commit(id);
    if (commit == null) {
      return NONE;
    } else if (commit.parent() != null) {
      return commit(commit.parent()) == null ? EXPIRED : commit.parent();
    }
    return commit.total() > added(commit) ? EXPIRED : NONE;
  }

  @Override
  long origin(long id, TableCommit commit) {
    return before(id);
  }

  @Override
  List<Numbered> since(long id) {
    refresh();
    Deque<Numbered> commits = new ArrayDeque<>();
    IcebergCommit newest = current();
    for (IcebergCommit at = newest; at != null && at.id() != id; at = commit(before(at.id()))) {
      commits.push(new Numbered(at.id(), at));
      if (id < 0) {
        break;
      }
    }
    return List.copyOf(commits);
  }

  @Override
  Timed timed(long id, String column) {
    IcebergCommit commit = commit(id);
    if (commit == null) {
      return null;
    }
    return new Timed(commit, column == null ? List.of() : commit.times(ByName.call(table, "io"), columns.id(column)));
  }

  @Override
  String identity(String column) {
    Integer id = columns.id(column);
    return id == null ? column : "number " + id;
  }

  @Override
  String wayToStatistics(String column) {
    return "Set the table's property write.metadata.metrics.column." + column + " to full, and let its writers write metrics.";
  }

  @Override
  void requireCleaned(long id) {}

  /** Each batch of a query is a snapshot, with bounds or without. */
  @Override
  boolean lacks(long batch, long last, boolean wentBack, boolean whole) {
    return whole && last < batch - 1;
  }

  /** The last snapshot of which all files lie before an offset; {@link #NONE} for none. */
  public long passed(IcebergOffset offset) {
    Long found = passed.get(offset);
    if (found == null) {
      found = offset.snapshot() < 0 ? NONE : passedNow(offset);
      passed.put(offset, found);
    }
    if (passed.size() > MOST_KNOWN) {
      passed.remove(passed.keySet().iterator().next());
    }
    return found;
  }

  private long passedNow(IcebergOffset offset) {
    IcebergCommit commit = commit(offset.snapshot());
    if (commit == null) {
      throw gone(offset.snapshot());
    } else if (offset.files() >= (offset.inTable() ? commit.total() : added(commit))) {
      return offset.snapshot();
    }
    return offset.inTable() ? NONE : before(offset.snapshot());
  }

  /** Refuses a table whose present rows do not come from the snapshot that a query has read. */
  public void requireFollows(IcebergOffset read) {
    if (read.snapshot() < 0) {
      return;
    }
    IcebergCommit at = current();
    while (at != null && at.id() != read.snapshot()) {
      at = commit(before(at.id()));
    }
    if (at == null) {
      throw gone(read.snapshot());
    }
  }

  /** Refuses to begin with a table whose first snapshots have expired: their rows would be missing below its bounds. */
  public void requireBeginning(IcebergOffset first) {
    IcebergCommit at = first.snapshot() < 0 ? current() : commit(first.snapshot());
    while (at != null && first.snapshot() < 0 && commit(before(at.id())) != null) {
      at = commit(before(at.id()));
    }
    if (at != null && before(at.id()) == EXPIRED) {
      throw new IllegalStateException(
          "DataLostError: snapshots of " + name.name() + " before " + at.id() + ", the first one that is left, have expired."
              + " A stream over the table begins there, so rows that the table has would be missing from windows that are"
              + " complete by its bounds. Keep its snapshots (history.expire.min-snapshots-to-keep), or say from when on the"
              + " query is to read: option(\"stream-from-timestamp\", milliseconds since 1970).");
    }
  }

  private IllegalStateException gone(long id) {
    boolean isThere = commit(id) != null;
    return new IllegalStateException(
        "DataLostError: this query has read " + name.name() + " up to snapshot " + id + ", "
            + (isThere
                ? "which the rows of the table do not come from any more: it was rolled back or replaced (rollback_to_snapshot,"
                    + " set_current_snapshot, CREATE OR REPLACE TABLE). Set it to where it was"
                : "which it does not have any more: the snapshot has expired, or the table was created again. Let the query run more"
                    + " often than snapshots expire")
            + ". Or else: " + NEW_QUERY);
  }

  @Override
  String wayToReplace() {
    return "";
  }
}

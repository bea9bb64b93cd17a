package sparkrowtime.tables;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import sparkrowtime.support.ByName;

/** A snapshot of an Iceberg table, whose summary has the properties. */
final class IcebergCommit extends TableCommit {
  /** Iceberg's own sink says so in the snapshot of each batch, with bounds or without. */
  private static final String QUERY_OF_SINK = "spark.sql.streaming.queryId";

  private static final String BATCH_OF_SINK = "spark.sql.streaming.epochId";
  private static final String APPEND = "append";

  private final String table;
  private final Object snapshot;
  private final Map<?, ?> summary;
  private final IcebergColumns columns;

  /**
   * @param columns which name a column of the snapshot has now
   */
  IcebergCommit(String table, Object snapshot, IcebergColumns columns) {
    this.table = table;
    this.snapshot = snapshot;
    this.summary = (Map<?, ?>) ByName.call(snapshot, "summary");
    this.columns = columns;
  }

  long id() {
    return (Long) ByName.call(snapshot, "snapshotId");
  }

  /** The snapshot before; null for the first one. */
  Long parent() {
    return (Long) ByName.call(snapshot, "parentId");
  }

  /**
   * How many files it has added, as Iceberg's source counts them.
   *
   * @param io how Iceberg reads files, for a snapshot whose summary does not say it
   */
  long added(Object io) {
    if (said("added-data-files") != null) {
      return number("added-data-files");
    }
    return files(io).size();
  }

  private List<Object> files(Object io) {
    List<Object> files = new ArrayList<>();
    ((Iterable<?>) ByName.call(snapshot, "addedDataFiles", io)).forEach(files::add);
    return files;
  }

  /**
   * The times of a column in the files that it has added, if it has only added some: a stream over the table reads no others.
   *
   * @param column the number of the column; null where the table has no such column
   */
  List<CommitLog.FileTime> times(Object io, Integer column) {
    return operation().equals(APPEND) ? files(io).stream().map(file -> IcebergTimes.of(file, column)).toList() : List.of();
  }

  /** How many files the table had after it. */
  long total() {
    return number("total-data-files");
  }

  private long number(String key) {
    String said = said(key);
    return said == null ? 0 : Long.parseLong(said);
  }

  @Override
  String said(String key) {
    Object said = summary.get(key);
    return said == null ? null : said.toString();
  }

  @Override
  String place() {
    return "Snapshot " + id() + " of " + table;
  }

  @Override
  String operation() {
    return String.valueOf(ByName.call(snapshot, "operation"));
  }

  @Override
  Long time() {
    return (Long) ByName.call(snapshot, "timestampMillis") * 1_000;
  }

  @Override
  String text() {
    return Long.toString(id());
  }

  /** Columns have numbers, so a column that was given another name keeps its bound. Of one that is gone there is none. */
  @Override
  String column() {
    return super.column() == null ? null : columns.now(super.column(), (Integer) ByName.call(snapshot, "schemaId"));
  }

  @Override
  Long floor() {
    return super.column() != null && column() == null ? null : super.floor();
  }

  @Override
  boolean isOf(String query) {
    return super.isOf(query) || query.equals(said(QUERY_OF_SINK));
  }

  @Override
  long batch() {
    return said(BATCH_OF_SINK) != null && (said(QUERY) == null || said(QUERY).equals(said(QUERY_OF_SINK)))
        ? Long.parseLong(said(BATCH_OF_SINK))
        : super.batch();
  }
}

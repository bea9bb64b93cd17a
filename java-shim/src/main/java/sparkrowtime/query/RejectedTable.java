package sparkrowtime.query;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.DataFrameWriterV2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import sparkrowtime.tables.DeltaLog;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;

/**
 * Keeps the late rows of a table in another Delta or Iceberg table, with the bound that they lie below. They pass through the
 * driver. The table gets the columns that the source gets.
 *
 * <p>Law: a batch that runs again appends none. Delta knows the batch by its transaction; of Iceberg the snapshots say it. A
 * batch of the same number that ends elsewhere, or a Delta table that knows a later one, is of an older checkpoint, and is
 * refused: its rows would be taken for those that are there.
 */
final class RejectedTable {
  private static final String BOUND = "belowBound";
  private static final String ROWS = "rowtime.late:";

  private final MicroBatchExecution query;
  private final String source;
  private final InTable mark;
  private final String end;

  /**
   * @param source the number of the source in the query's checkpoint
   * @param end the offset of the source at which the batch ends
   */
  RejectedTable(MicroBatchExecution query, String source, InTable mark, Offset end) {
    this.query = query;
    this.source = source;
    this.mark = mark;
    this.end = UUID.nameUUIDFromBytes(end.json().getBytes(StandardCharsets.UTF_8)).toString();
  }

  /**
   * @param bound the bound that the rows lie below, in microseconds
   */
  void append(long batch, long bound, List<InternalRow> rows) {
    SparkSession session = query.sparkSessionForStream();
    StructType schema = mark.kept().add(BOUND, DataTypes.TimestampType, false);
    Dataset<Row> frame = session.createDataFrame(external(rows, mark.kept(), bound), schema);
    String whose = ROWS + query.id() + ":" + source;
    if (mark.rejected().format().equals(TableName.DELTA)) {
      appendDelta(frame, whose, batch);
    } else {
      appendIceberg(session, frame, whose, batch);
    }
  }

  private void appendDelta(Dataset<Row> rows, String whose, long batch) {
    String of = "late rows of batch " + batch + " of query " + query.id();
    String said = of + ", source " + source + ", which ends at " + end;
    rows.write()
        .format("delta")
        .mode("append")
        .option("mergeSchema", true)
        .option("txnAppId", whose)
        .option("txnVersion", batch)
        .option("userMetadata", said)
        .save(mark.rejected().name());
    Configuration hadoop = query.sparkSessionForStream().sessionState().newHadoopConf();
    if (!new DeltaLog(new Path(mark.rejected().name(), "_delta_log"), hadoop).says(said, of + '"')) {
      throw refused(batch);
    }
  }

  private IllegalStateException refused(long batch) {
    return new IllegalStateException(
        "ProducerFencedError: the late rows of batch " + batch + " of query " + query.id() + " cannot be kept in " + mark.rejected()
            + ", which has those of another batch of this number, or of later ones. The query's checkpoint is an older copy, or"
            + " was copied. None of these rows was kept. Continue with the newest checkpoint, in one process, or start the query"
            + " with a new checkpoint and a new output.");
  }

  private void appendIceberg(SparkSession session, Dataset<Row> rows, String whose, long batch) {
    String table = mark.rejected().name();
    boolean isThere = session.catalog().tableExists(table);
    if (isThere && isKept(session.table(table + ".snapshots"), "summary['" + whose + "']", batch)) {
      return;
    }
    DataFrameWriterV2<Row> writer = rows.writeTo(table).option("snapshot-property." + whose, batch + ":" + end);
    try {
      if (isThere) {
        addColumns(session, table, rows.schema());
        writer.append();
      } else {
        writer.using(TableName.ICEBERG).create();
      }
    } catch (AnalysisException e) {
      throw new IllegalStateException("The late rows of batch " + batch + " cannot be kept in " + mark.rejected(), e);
    }
  }

  /** Whether a snapshot has the rows of the batch. Those of earlier versions say its number alone. */
  private boolean isKept(Dataset<Row> snapshots, String said, long batch) {
    String own = said + " = '" + batch + "' OR " + said + " LIKE '" + batch + ":%'";
    List<Row> found = snapshots.where(own).selectExpr(said).collectAsList();
    if (found.stream().anyMatch(row -> row.getString(0).contains(":") && !row.getString(0).endsWith(end))) {
      throw refused(batch);
    }
    return !found.isEmpty();
  }

  /** Columns that the source has got since, which Delta adds by itself. */
  private static void addColumns(SparkSession session, String table, StructType rows) {
    Set<String> there = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    there.addAll(List.of(session.table(table).schema().fieldNames()));
    for (StructField field : rows.fields()) {
      if (!there.contains(field.name())) {
        session.sql("ALTER TABLE " + table + " ADD COLUMNS (" + new StructType().add(field.name(), field.dataType()).toDDL() + ")");
      }
    }
  }

  private static List<Row> external(List<InternalRow> rows, StructType schema, long micros) {
    Function1<Object, Object> external = CatalystTypeConverters.createToScalaConverter(schema);
    Object bound = CatalystTypeConverters.createToScalaConverter(DataTypes.TimestampType).apply(micros);
    List<Row> all = new ArrayList<>();
    for (InternalRow internal : rows) {
      Row row = (Row) external.apply(internal);
      Object[] values = new Object[schema.length() + 1];
      for (int i = 0; i < schema.length(); i++) {
        values[i] = row.get(i);
      }
      values[schema.length()] = bound;
      all.add(RowFactory.create(values));
    }
    return all;
  }
}

package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.DataFrameWriterV2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;

/**
 * Keeps the late rows of a table in another Delta or Iceberg table, with the bound that they lie below. They pass through the
 * driver. The table gets the columns that the source gets.
 *
 * <p>Law: a batch that runs again appends none. Delta knows the batch by its transaction; of Iceberg the snapshots say it.
 */
final class RejectedTable {
  private static final String BOUND = "belowBound";
  private static final String ROWS = "rowtime.late:";

  private final MicroBatchExecution query;
  private final String source;
  private final InTable mark;

  /**
   * @param source the number of the source in the query's checkpoint
   */
  RejectedTable(MicroBatchExecution query, String source, InTable mark) {
    this.query = query;
    this.source = source;
    this.mark = mark;
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
    rows.write()
        .format("delta")
        .mode("append")
        .option("mergeSchema", true)
        .option("txnAppId", whose)
        .option("txnVersion", batch)
        .option("userMetadata", "late rows of batch " + batch + " of query " + query.id())
        .save(mark.rejected().name());
  }

  private void appendIceberg(SparkSession session, Dataset<Row> rows, String whose, long batch) {
    String table = mark.rejected().name();
    String said = "summary['" + whose + "']";
    boolean isThere = session.catalog().tableExists(table);
    if (isThere && !session.table(table + ".snapshots").where(said + " = '" + batch + "'").isEmpty()) {
      return;
    }
    DataFrameWriterV2<Row> writer = rows.writeTo(table).option("snapshot-property." + whose, batch);
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

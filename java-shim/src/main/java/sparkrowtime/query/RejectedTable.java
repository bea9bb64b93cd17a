package sparkrowtime.query;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import sparkrowtime.tables.InTable;

/**
 * Keeps the late rows of a table in another Delta table, with the bound that they lie below. They pass through the driver.
 *
 * <p>Law: a batch that runs again appends none: Delta knows the batch by its transaction.
 */
final class RejectedTable {
  private static final String BOUND = "belowBound";

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
    query
        .sparkSessionForStream()
        .createDataFrame(external(rows, mark.kept(), bound), mark.kept().add(BOUND, DataTypes.TimestampType, false))
        .write()
        .format("delta")
        .mode("append")
        .option("txnAppId", "rowtime.late:" + query.id() + ":" + source)
        .option("txnVersion", batch)
        .option("userMetadata", "late rows of batch " + batch + " of query " + query.id())
        .save(mark.rejected());
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

package sparkrowtime.support;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/** A few rows as an Arrow stream, in which they go to Python. */
public final class ArrowRows {
  private ArrowRows() {}

  /** Empty if there are no rows. Times are in UTC; Python casts to the types of the stream. */
  public static byte[] stream(List<InternalRow> rows, StructType schema) {
    if (rows.isEmpty()) {
      return new byte[0];
    }
    var all = CollectionConverters.asScala(rows.iterator());
    boolean duplicateFieldsFail = true;
    boolean largeTypes = false;
    return ArrowConverters$.MODULE$
        .toBatchWithSchemaIterator(all, schema, rows.size(), Long.MAX_VALUE, "UTC", duplicateFieldsFail, largeTypes)
        .next();
  }
}

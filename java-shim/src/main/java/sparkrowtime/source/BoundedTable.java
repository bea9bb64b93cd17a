package sparkrowtime.source;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sparkrowtime.support.ShimMismatch;

/**
 * Wraps Spark's table of the Python source; its streams have bounds. {@link
 * sparkrowtime.analysis.RowtimeRelations} puts it into the plan. Spark asks it for a scan once per
 * start of a query, in the query's thread.
 */
public final class BoundedTable implements SupportsRead {
  private final SupportsRead table;

  private BoundedTable(SupportsRead table) {
    this.table = table;
  }

  /** The table with bounds; a table that has them as it is. */
  public static Table over(Table table) {
    if (table instanceof BoundedTable) {
      return table;
    }
    if (table instanceof SupportsRead readable) {
      return new BoundedTable(readable);
    }
    throw new ShimMismatch("a readable table behind format(\"rowtime\"), not " + table.getClass(), null);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ScanBuilder builder = table.newScanBuilder(options);
    return () -> new BoundedScan(builder.build(), options);
  }

  @Override
  public String name() {
    return table.name();
  }

  /** What Spark 4.0 declares without a default. */
  @Override
  @SuppressWarnings("deprecation")
  public StructType schema() {
    return table.schema();
  }

  @Override
  public Column[] columns() {
    return table.columns();
  }

  @Override
  public Transform[] partitioning() {
    return table.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }
}

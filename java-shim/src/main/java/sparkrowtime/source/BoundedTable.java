package sparkrowtime.source;

import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import sparkrowtime.support.ShimMismatch;
import sparkrowtime.tables.IcebergLog;
import sparkrowtime.tables.InTable;

/**
 * Wraps a table of Spark, that of the Python source or one of Iceberg; its streams have bounds. {@link
 * sparkrowtime.analysis.RowtimeRelations} puts it into the plan. Spark asks it for a scan once per
 * start of a query, in the query's thread.
 */
public final class BoundedTable implements SupportsRead {
  private final SupportsRead table;
  private final BiFunction<Scan, CaseInsensitiveStringMap, Scan> bounds;

  private BoundedTable(SupportsRead table, BiFunction<Scan, CaseInsensitiveStringMap, Scan> bounds) {
    this.table = table;
    this.bounds = bounds;
  }

  /** The table with bounds; a table that has them as it is. */
  public static Table over(Table table) {
    if (table instanceof BoundedTable) {
      return table;
    }
    return new BoundedTable(readable(table), BoundedScan::new);
  }

  /** An Iceberg table whose snapshots have bounds. */
  public static Table ofIceberg(Table table, InTable mark) {
    IcebergLog log = IcebergLog.of(table);
    return new BoundedTable(readable(table), (scan, options) -> new IcebergScan(scan, log, mark, options));
  }

  private static SupportsRead readable(Table table) {
    if (table instanceof SupportsRead readable) {
      return readable;
    }
    throw new ShimMismatch("a table that can be read, not " + table.getClass(), null);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    ScanBuilder builder = table.newScanBuilder(options);
    return () -> bounds.apply(builder.build(), options);
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

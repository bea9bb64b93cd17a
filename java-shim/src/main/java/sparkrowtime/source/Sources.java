package sparkrowtime.source;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.DataSource;
import sparkrowtime.analysis.BoundedSources;
import sparkrowtime.tables.InTable;

/** The sources with bounds, for the rules. */
public final class Sources implements BoundedSources {
  @Override
  public Table ofRowtime(Table table) {
    return BoundedTable.over(table);
  }

  @Override
  public DataSource ofDelta(DataSource table, InTable mark) {
    return DeltaDataSource.of(table, mark);
  }

  @Override
  public Table ofIceberg(Table table, InTable mark) {
    return BoundedTable.ofIceberg(table, mark);
  }
}

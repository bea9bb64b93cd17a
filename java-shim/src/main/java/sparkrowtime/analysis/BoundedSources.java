package sparkrowtime.analysis;

import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.execution.datasources.DataSource;
import sparkrowtime.tables.InTable;

/** What the rules put into the place of a source, so that it has bounds. */
public interface BoundedSources {
  /** The table of a rowtime stream; one that has bounds as it is. */
  Table ofRowtime(Table table);

  /** A data source of version 1 that reads a Delta table. */
  DataSource ofDelta(DataSource table, InTable mark);

  /** A table of Iceberg. */
  Table ofIceberg(Table table, InTable mark);
}

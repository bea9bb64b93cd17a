package sparkrowtime.source;

import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.streaming.Source;
import sparkrowtime.compat.CopiedDataSource;
import sparkrowtime.tables.InTable;

/**
 * The data source of a Delta table with bounds in its commits. Spark asks it for a source once per start of a query.
 *
 * <p>Law: it equals itself alone. Spark drops a change of a plan whose parts equal the old ones.
 */
public final class DeltaDataSource extends CopiedDataSource {
  private static final long serialVersionUID = 1L;

  private final InTable mark;

  private DeltaDataSource(DataSource of, InTable mark) {
    super(of);
    this.mark = mark;
  }

  public static DataSource of(DataSource table, InTable mark) {
    return new DeltaDataSource(table, mark);
  }

  @Override
  public Source createSource(String metadataPath) {
    return DeltaSource.over(super.createSource(metadataPath), metadataPath, mark);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof DeltaDataSource;
  }

  @Override
  public boolean equals(Object other) {
    return this == other;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}

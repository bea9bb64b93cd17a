package sparkrowtime.compat;

import org.apache.spark.sql.execution.datasources.DataSource;

/** A data source with the fields of another one, for a subclass that makes other sources. */
public abstract class CopiedDataSource extends DataSource {
  private static final long serialVersionUID = 1L;

  protected CopiedDataSource(DataSource of) {
    super(
        of.sparkSession(), of.className(), of.paths(), of.userSpecifiedSchema(), of.partitionColumns(), of.bucketSpec(),
        of.options(), of.catalogTable());
  }
}

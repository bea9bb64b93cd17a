package sparkrowtime.tables;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.Source;

/**
 * A source of version 1 that reads a table with bounds in its commits.
 *
 * <p>Law: its floor is a function of the offset alone, since what a commit has never changes.
 */
public abstract class TableStream implements Source {
  private long late;

  /** The floor in microseconds of the rows behind an offset, as it is published; null if nothing is promised. */
  public abstract Long floor(String offset);

  /** The last version of which all rows lie before an offset; negative for none. */
  public abstract long version(String offset);

  /** The folder of the table. */
  public abstract Path table();

  /** The number of this source in the query's checkpoint. */
  public abstract String number();

  /** The number of late rows of the last batch, for the query's progress. */
  public final void late(long rows) {
    late = rows;
  }

  protected final long late() {
    return late;
  }
}

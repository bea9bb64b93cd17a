package sparkrowtime.tables;

import org.apache.spark.sql.connector.read.streaming.SparkDataStream;

/**
 * The source of a table with bounds in its commits.
 *
 * <p>Law: its floor is a function of the offset alone, since what a commit has never changes.
 */
public interface TableStream extends SparkDataStream {
  /** The floor in microseconds of the rows behind an offset, as it is published; null if nothing is promised. */
  Long floor(String offset);

  /** The last commit of which all rows lie before an offset; negative for none. */
  long passed(String offset);

  TableName table();

  /** The number of this source in the query's checkpoint. */
  String number();

  /** The number of late rows of the last batch, for the query's progress. */
  void late(long rows);
}

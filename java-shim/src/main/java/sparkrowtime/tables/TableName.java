package sparkrowtime.tables;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * A table as users name it: {@code delta:PATH}, or {@code iceberg:CATALOG.NAMESPACE.TABLE} with the names that Spark has.
 *
 * @param format what stands before the colon
 * @param name what stands behind it
 */
public record TableName(String format, String name) implements Serializable {
  public static final String DELTA = "delta";
  public static final String ICEBERG = "iceberg";

  /** The table of this name; null if it is none. */
  public static TableName of(String name) {
    int colon = name.indexOf(':');
    String format = colon < 0 ? "" : name.substring(0, colon);
    boolean isTable = (format.equals(DELTA) || format.equals(ICEBERG)) && colon < name.length() - 1;
    return isTable ? new TableName(format, name.substring(colon + 1)) : null;
  }

  /** The name as the source of the table has it: a path with its file system. */
  public TableName qualified(Configuration hadoop) {
    return format.equals(DELTA) ? ofDelta(new Path(name), hadoop) : this;
  }

  /** The Delta table in a folder. */
  public static TableName ofDelta(Path folder, Configuration hadoop) {
    try {
      return new TableName(DELTA, folder.getFileSystem(hadoop).makeQualified(folder).toString());
    } catch (IOException e) {
      throw new UncheckedIOException("The file system of " + folder + " is not known.", e);
    }
  }

  @Override
  public String toString() {
    return format + ":" + name;
  }
}

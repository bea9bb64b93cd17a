package sparkrowtime.read;

import java.util.Arrays;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A view of some rows of a column: row i is row {@code rows[i]} of that column. Copies nothing. */
final class ChosenRows extends OwnColumn {
  private final int[] rows;
  private ChosenRows[] children = {};

  ChosenRows(ColumnVector column, int[] rows) {
    super(column);
    this.rows = rows;
  }

  @Override
  int at(int i) {
    return rows[i];
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row : rows) {
      nulls += column.isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  /** A field of a struct. Spark asks for it at every row, so it is cached. */
  @Override
  public ColumnVector getChild(int ordinal) {
    if (ordinal >= children.length) {
      children = Arrays.copyOf(children, ordinal + 1);
    }
    if (children[ordinal] == null) {
      children[ordinal] = new ChosenRows(column.getChild(ordinal), rows);
    }
    return children[ordinal];
  }
}

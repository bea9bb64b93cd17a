package sparkrowtime.read;

import java.util.Arrays;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A view of some rows of a column: row i is row {@code rows[i]} of that column. Copies nothing. */
final class ChosenRows extends ColumnVector {
  private final ColumnVector column;
  private final int[] rows;
  private ChosenRows[] children = {};

  ChosenRows(ColumnVector column, int[] rows) {
    super(column.dataType());
    this.column = column;
    this.rows = rows;
  }

  @Override
  public void close() {
    column.close();
  }

  @Override
  public boolean hasNull() {
    return column.hasNull();
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row : rows) {
      nulls += column.isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  @Override
  public boolean isNullAt(int i) {
    return column.isNullAt(rows[i]);
  }

  @Override
  public boolean getBoolean(int i) {
    return column.getBoolean(rows[i]);
  }

  @Override
  public byte getByte(int i) {
    return column.getByte(rows[i]);
  }

  @Override
  public short getShort(int i) {
    return column.getShort(rows[i]);
  }

  @Override
  public int getInt(int i) {
    return column.getInt(rows[i]);
  }

  @Override
  public long getLong(int i) {
    return column.getLong(rows[i]);
  }

  @Override
  public float getFloat(int i) {
    return column.getFloat(rows[i]);
  }

  @Override
  public double getDouble(int i) {
    return column.getDouble(rows[i]);
  }

  @Override
  public ColumnarArray getArray(int i) {
    return column.getArray(rows[i]);
  }

  @Override
  public ColumnarMap getMap(int i) {
    return column.getMap(rows[i]);
  }

  @Override
  public Decimal getDecimal(int i, int precision, int scale) {
    return column.getDecimal(rows[i], precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int i) {
    return column.getUTF8String(rows[i]);
  }

  @Override
  public byte[] getBinary(int i) {
    return column.getBinary(rows[i]);
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

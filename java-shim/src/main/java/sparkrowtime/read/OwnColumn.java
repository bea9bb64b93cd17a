package sparkrowtime.read;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of a vector of Arrow, which Spark does not know as one. From Spark 4.3 on, a Python function takes batches of
 * {@link ArrowColumnVector} as they are, and keeps them while it asks for the next: their memory would be freed by then,
 * and the rows would have whatever is there. Of any other column Spark copies the rows.
 *
 * <p>Law: row i is row {@link #at} of the column, which is i unless a subclass says another, and it is no
 * {@link ArrowColumnVector}.
 */
class OwnColumn extends ColumnVector {
  final ColumnVector column;

  OwnColumn(ColumnVector column) {
    super(column.dataType());
    this.column = column;
  }

  int at(int row) {
    return row;
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
    return column.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return column.isNullAt(at(row));
  }

  @Override
  public boolean getBoolean(int row) {
    return column.getBoolean(at(row));
  }

  @Override
  public byte getByte(int row) {
    return column.getByte(at(row));
  }

  @Override
  public short getShort(int row) {
    return column.getShort(at(row));
  }

  @Override
  public int getInt(int row) {
    return column.getInt(at(row));
  }

  @Override
  public long getLong(int row) {
    return column.getLong(at(row));
  }

  @Override
  public float getFloat(int row) {
    return column.getFloat(at(row));
  }

  @Override
  public double getDouble(int row) {
    return column.getDouble(at(row));
  }

  @Override
  public ColumnarArray getArray(int row) {
    return column.getArray(at(row));
  }

  @Override
  public ColumnarMap getMap(int row) {
    return column.getMap(at(row));
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return column.getDecimal(at(row), precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return column.getUTF8String(at(row));
  }

  @Override
  public byte[] getBinary(int row) {
    return column.getBinary(at(row));
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return column.getChild(ordinal);
  }
}

package sparkrowtime.read;

import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column of numbers, times or texts, read from its memory without Arrow's checks. Arrow checks at each value that the
 * index lies in the memory, and that the memory is not freed; {@link MessageCheck} has checked the sizes once.
 *
 * <p>Law: it gives what {@link ArrowColumnVector} gives, for each row of the batch, until the batch is closed. Spark
 * reads no other rows, and none later.
 */
final class FlatColumn extends OwnColumn {
  private final boolean hasNulls;
  private final long validity;
  private final long offsets;
  private final long values;

  private FlatColumn(FieldVector vector, long offsets) {
    super(new ArrowColumnVector(vector));
    this.hasNulls = vector.getNullCount() > 0;
    this.validity = vector.getValidityBufferAddress();
    this.offsets = offsets;
    this.values = vector.getDataBufferAddress();
  }

  /** The column of a vector; one with Arrow's checks for types that are not in the list. */
  static ColumnVector of(FieldVector vector) {
    int width = width(vector);
    if (width < 0 || vector.getValueCount() == 0) {
      return new OwnColumn(new ArrowColumnVector(vector));
    }
    return new FlatColumn(vector, width == 0 ? vector.getOffsetBufferAddress() : 0);
  }

  /** The bytes of a value; 0 for texts; -1 for all other types. */
  private static int width(FieldVector vector) {
    return switch (vector.getMinorType()) {
      case TINYINT, SMALLINT, INT, BIGINT, FLOAT4, FLOAT8, DATEDAY, TIMESTAMPMICRO, TIMESTAMPMICROTZ ->
          ((BaseFixedWidthVector) vector).getTypeWidth();
      case VARCHAR -> vector instanceof VarCharVector ? 0 : -1;
      default -> -1;
    };
  }

  @Override
  public boolean isNullAt(int row) {
    return hasNulls && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
  }

  @Override
  public byte getByte(int row) {
    return Platform.getByte(null, values + row);
  }

  @Override
  public short getShort(int row) {
    return Platform.getShort(null, values + (long) Short.BYTES * row);
  }

  @Override
  public int getInt(int row) {
    return Platform.getInt(null, values + (long) Integer.BYTES * row);
  }

  @Override
  public long getLong(int row) {
    return Platform.getLong(null, values + (long) Long.BYTES * row);
  }

  @Override
  public float getFloat(int row) {
    return Platform.getFloat(null, values + (long) Float.BYTES * row);
  }

  @Override
  public double getDouble(int row) {
    return Platform.getDouble(null, values + (long) Double.BYTES * row);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    long at = offsets + (long) Integer.BYTES * row;
    int start = Platform.getInt(null, at);
    return UTF8String.fromAddress(null, values + start, Platform.getInt(null, at + Integer.BYTES) - start);
  }
}

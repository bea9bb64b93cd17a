package sparkrowtime.read;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import sparkrowtime.support.Rowtime;

/**
 * A train as Spark's columns. They are views of the bytes that were read: nothing is copied. A column
 * that the query does not use costs only its share of the read and of the checksum.
 */
final class NativeBatch {
  /** Bytes before the metadata of a message: a continuation mark and the length of the metadata. */
  private static final int PREFIX = 8;

  private NativeBatch() {}

  /** The train's rows with rowtimes in its range, maybe none. Closing the batch frees its memory. */
  static ColumnarBatch of(NativeTrain train, Schema schema, NativeFiles files, BufferAllocator allocator) {
    try (ArrowRecordBatch message = message(files.read(train, allocator), train)) {
      KnownColumns known = KnownColumns.of(schema, message, train);
      MessageCheck.require(message, known.schema(), train);
      VectorSchemaRoot rows = VectorSchemaRoot.create(known.schema(), allocator);
      try {
        known.load(message, rows);
        ColumnVector[] columns = columns(rows, schema);
        return train.isWhole() ? new ColumnarBatch(columns, rows.getRowCount()) : part(rows, columns, train);
      } catch (RuntimeException | Error e) {
        rows.close();
        throw e;
      }
    }
  }

  /** The message in {@code bytes}. It takes over the memory. */
  private static ArrowRecordBatch message(ArrowBuf bytes, NativeTrain train) {
    try {
      int metadata = train.length() < PREFIX ? -1 : bytes.getInt(4);
      if (metadata < 0 || metadata > train.length() - PREFIX) {
        throw new IOException("its metadata does not end in it");
      }
      Message message = Message.getRootAsMessage(bytes.nioBuffer(PREFIX, metadata));
      ArrowBuf body = bytes.slice(PREFIX + metadata, message.bodyLength());
      return MessageSerializer.deserializeRecordBatch(message, body);
    } catch (IOException | RuntimeException e) {
      bytes.getReferenceManager().release(bytes.refCnt());
      throw train.corrupt(e.toString(), e);
    }
  }

  private static ColumnarBatch part(VectorSchemaRoot rows, ColumnVector[] columns, NativeTrain train) {
    int[] chosen = chosen((TimeStampMicroTZVector) rows.getVector(Rowtime.COLUMN), train);
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new ChosenRows(columns[i], chosen);
    }
    return new ColumnarBatch(columns, chosen.length);
  }

  private static int[] chosen(TimeStampMicroTZVector times, NativeTrain train) {
    return IntStream.range(0, times.getValueCount())
        .filter(row -> times.get(row) >= train.low() && times.get(row) < train.high())
        .toArray();
  }

  /** The columns of {@code schema}; null where the train does not have them yet. */
  private static ColumnVector[] columns(VectorSchemaRoot rows, Schema schema) {
    StructField[] types = ArrowUtils.fromArrowSchema(schema).fields();
    ColumnVector[] columns = new ColumnVector[types.length];
    for (int i = 0; i < columns.length; i++) {
      boolean known = i < rows.getFieldVectors().size();
      columns[i] = known ? FlatColumn.of(rows.getVector(i)) : nulls(rows.getRowCount(), types[i]);
    }
    return columns;
  }

  private static ColumnVector nulls(int count, StructField type) {
    ConstantColumnVector column = new ConstantColumnVector(count, type.dataType());
    column.setNull();
    return column;
  }
}

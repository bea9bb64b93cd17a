package sparkrowtime.read;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.arrow.flatbuf.Message;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
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
    VectorSchemaRoot rows = VectorSchemaRoot.create(schema, allocator);
    try (ArrowRecordBatch message = message(files.read(train, allocator), train)) {
      new VectorLoader(rows).load(message);
      if (rows.getRowCount() != train.rows()) {
        throw train.corrupt(rows.getRowCount() + " rows instead of " + train.rows(), null);
      }
      return train.isWhole() ? whole(rows) : part(rows, train);
    } catch (RuntimeException | Error e) {
      rows.close();
      throw e;
    }
  }

  /** The message in {@code bytes}. It takes over the memory. */
  private static ArrowRecordBatch message(ArrowBuf bytes, NativeTrain train) {
    try {
      int metadata = bytes.getInt(4);
      Message message = Message.getRootAsMessage(bytes.nioBuffer(PREFIX, metadata));
      ArrowBuf body = bytes.slice(PREFIX + metadata, message.bodyLength());
      return MessageSerializer.deserializeRecordBatch(message, body);
    } catch (IOException | RuntimeException e) {
      bytes.getReferenceManager().release(bytes.refCnt());
      throw train.corrupt(e.toString(), e);
    }
  }

  private static ColumnarBatch whole(VectorSchemaRoot rows) {
    return new ColumnarBatch(columns(rows), rows.getRowCount());
  }

  private static ColumnarBatch part(VectorSchemaRoot rows, NativeTrain train) {
    int[] chosen = chosen((TimeStampMicroTZVector) rows.getVector(Rowtime.COLUMN), train);
    ColumnVector[] columns = columns(rows);
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

  private static ColumnVector[] columns(VectorSchemaRoot rows) {
    return rows.getFieldVectors().stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
  }
}

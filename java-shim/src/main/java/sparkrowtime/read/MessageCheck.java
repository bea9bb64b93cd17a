package sparkrowtime.read;

import java.util.Iterator;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.BufferLayout;
import org.apache.arrow.vector.TypeLayout;
import org.apache.arrow.vector.compression.NoCompressionCodec;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.unsafe.Platform;

/**
 * Checks that the bytes of a message are what its rows need. Whoever may write to a stream may write any bytes, with a
 * checksum that fits, and Spark reads texts without a check.
 *
 * <p>Law: whatever the bytes of a train are, no read of its rows leaves its memory, and loading it takes no more than
 * a bit for each value.
 */
final class MessageCheck {
  private final Iterator<ArrowFieldNode> nodes;
  private final Iterator<ArrowBuf> buffers;
  private final NativeTrain train;

  private MessageCheck(ArrowRecordBatch message, NativeTrain train) {
    this.nodes = message.getNodes().iterator();
    this.buffers = message.getBuffers().iterator();
    this.train = train;
  }

  /** Checks the columns of {@code schema}, which the message has; it may have more. */
  static void require(ArrowRecordBatch message, Schema schema, NativeTrain train) {
    if (message.getBodyCompression().getCodec() != NoCompressionCodec.COMPRESSION_TYPE) {
      throw train.corrupt("it is compressed, as no train is", null);
    }
    if (message.getLength() != train.rows()) {
      throw train.corrupt(message.getLength() + " rows instead of " + train.rows(), null);
    }
    MessageCheck check = new MessageCheck(message, train);
    for (Field field : schema.getFields()) {
      check.column(field, train.rows(), train.rows());
    }
  }

  /** A column, and those nested in it. */
  private void column(Field field, long least, long most) {
    ArrowFieldNode node = next(nodes);
    long count = node.getLength();
    if (count < least || count > most || count < 0) {
      throw train.corrupt("column " + field.getName() + " has " + count + " values, and needs " + least, null);
    }
    boolean alike = node.getNullCount() == 0 || node.getNullCount() == count;
    long last = count;
    for (BufferLayout layout : TypeLayout.getTypeLayout(field.getType()).getBufferLayouts()) {
      ArrowBuf buffer = next(buffers);
      switch (layout.getType()) {
        case VALIDITY -> size(field, buffer, alike && buffer.capacity() == 0 ? 0 : count);
        case OFFSET -> last = last(field, buffer, count);
        case DATA -> size(field, buffer, last * layout.getTypeBitWidth());
        default -> throw train.corrupt("column " + field.getName() + " has a buffer of another kind", null);
      }
    }
    for (Field child : field.getChildren()) {
      column(child, last, (long) Byte.SIZE * train.length());
    }
  }

  /** The last of the offsets, none of which is below the one before it. */
  private long last(Field field, ArrowBuf offsets, long count) {
    if (count == 0) {
      return 0;
    }
    size(field, offsets, (count + 1) * Integer.SIZE);
    long at = offsets.memoryAddress();
    int before = 0;
    int wrong = 0; // its sign: whether an offset is negative, or less than the one before it
    for (long end = at + count * Integer.BYTES; at <= end; at += Integer.BYTES) {
      int next = Platform.getInt(null, at);
      wrong |= next | (next - before);
      before = next;
    }
    if (wrong < 0) {
      throw train.corrupt("column " + field.getName() + " has offsets that are not in order", null);
    }
    return before;
  }

  private void size(Field field, ArrowBuf buffer, long bits) {
    if (buffer.capacity() * Byte.SIZE < bits) {
      throw train.corrupt("column " + field.getName() + " has fewer bytes than its rows need", null);
    }
  }

  private <T> T next(Iterator<T> parts) {
    if (!parts.hasNext()) {
      throw train.corrupt("it has fewer parts than its columns", null);
    }
    return parts.next();
  }
}

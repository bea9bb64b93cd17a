package sparkrowtime.read;

import java.util.List;
import org.apache.arrow.vector.TypeLayout;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;

/**
 * The columns of a query's schema that a train has. Columns are only ever added at the end of a stream's
 * schema. A train from before has fewer columns than the query; a train from after has more.
 *
 * <p>A message does not contain its schema. The number of its field nodes, one for each column and each
 * column nested in it, says which columns it has.
 *
 * @param schema the beginning of the query's schema
 * @param nodes how many field nodes of the message it takes
 */
record KnownColumns(Schema schema, int nodes) {

  static KnownColumns of(Schema schema, ArrowRecordBatch message, NativeTrain train) {
    int columns = 0;
    int nodes = 0;
    for (Field field : schema.getFields()) {
      if (nodes + nodes(field) > message.getNodes().size()) {
        break;
      }
      nodes += nodes(field);
      columns++;
    }
    if (columns < schema.getFields().size() && nodes < message.getNodes().size()) {
      throw train.corrupt(message.getNodes().size() + " field nodes, which fit no schema of the stream", null);
    }
    return new KnownColumns(new Schema(schema.getFields().subList(0, columns)), nodes);
  }

  /** Loads the message, without the columns that the query does not know, into {@code rows}. */
  void load(ArrowRecordBatch message, VectorSchemaRoot rows) {
    if (nodes == message.getNodes().size()) {
      new VectorLoader(rows).load(message);
      return;
    }
    try (ArrowRecordBatch part = part(message)) {
      new VectorLoader(rows).load(part);
    }
  }

  private ArrowRecordBatch part(ArrowRecordBatch message) {
    int buffers = schema.getFields().stream().mapToInt(KnownColumns::buffers).sum();
    return new ArrowRecordBatch(
        message.getLength(), message.getNodes().subList(0, nodes), message.getBuffers().subList(0, buffers));
  }

  private static int nodes(Field field) {
    return 1 + field.getChildren().stream().mapToInt(KnownColumns::nodes).sum();
  }

  private static int buffers(Field field) {
    List<Field> children = field.getChildren();
    return TypeLayout.getTypeBufferCount(field.getType()) + children.stream().mapToInt(KnownColumns::buffers).sum();
  }
}

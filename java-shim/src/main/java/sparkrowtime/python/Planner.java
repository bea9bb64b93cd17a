package sparkrowtime.python;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.EOFException;
import java.net.SocketException;
import java.util.function.Supplier;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.util.UninterruptibleThread;
import sparkrowtime.support.PickledText;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The Python process that plans a stream's reads while the query runs. It may be killed. Used in the query's thread.
 *
 * <p>It is asked by Spark's call for partitions, which has the same form in all versions of Spark, and can be made at any
 * time. In the place of the start is the offset that the question is about. In the place of the end is the question, an
 * object of JSON with the key "ask". In the place of a partition is the answer, a text of JSON.
 *
 * <p>Law: a question is never written to a log.
 *
 * <p>A query that is stopped interrupts its thread. An interrupt closes the connection to the process, which then
 * could not be told the end of the query, so the interrupt waits until the process has answered.
 */
final class Planner {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final MicroBatchStream stream;

  Planner(MicroBatchStream stream) {
    this.stream = stream;
  }

  /** A question of this name, to which arguments may be added. */
  static ObjectNode question(String name) {
    return MAPPER.createObjectNode().put("ask", name);
  }

  /** The answer to a question about an offset, as a text of JSON. */
  String ask(Offset about, ObjectNode question) {
    InputPartition[] answer = partitions(about, question);
    if (answer.length == 1 && answer[0] instanceof PythonStreamingInputPartition only) {
      return PickledText.of(only.pickedPartition());
    }
    throw new ShimMismatch("the answer of a Python source as its only partition", null);
  }

  /** The answer to a question for Spark's own partitions. */
  InputPartition[] partitions(Offset about, ObjectNode question) {
    Offset from = stream.deserializeOffset(about.json());
    Offset asked = stream.deserializeOffset(question.toString());
    return answer(() -> stream.planInputPartitions(from, asked));
  }

  /** A call without an answer. */
  void commit(Offset end) {
    answer(
        () -> {
          stream.commit(end);
          return null;
        });
  }

  /** What the process gives. If it has ended, the error says so, and not that a socket was closed. */
  private static <T> T answer(Supplier<T> call) {
    try {
      return Thread.currentThread() instanceof UninterruptibleThread thread
          ? thread.runUninterruptibly(Scala.call(call))
          : call.get();
    } catch (Exception e) {
      if (e instanceof EOFException || e instanceof SocketException) {
        throw new IllegalStateException(
            "StoreUnavailableError: the Python process that plans the reads of this rowtime stream has"
                + " ended: it was killed, perhaps for lack of memory. Nothing is lost. Start the query"
                + " again; it continues from its checkpoint.",
            e);
      }
      throw e;
    }
  }
}

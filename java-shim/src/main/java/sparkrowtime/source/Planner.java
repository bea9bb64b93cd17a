package sparkrowtime.source;

import java.io.EOFException;
import java.net.SocketException;
import java.util.function.Supplier;
import org.apache.spark.util.UninterruptibleThread;
import sparkrowtime.support.Scala;

/**
 * The Python process that plans a stream's reads while the query runs. It may be killed.
 *
 * <p>A query that is stopped interrupts its thread. An interrupt closes the connection to the process, which then
 * could not be told the end of the query, so the interrupt waits until the process has answered.
 */
final class Planner {
  private Planner() {}

  /** A call without an answer. */
  static void run(Runnable call) {
    answer(
        () -> {
          call.run();
          return null;
        });
  }

  /** The answer of the process. If it has ended, the error says so, and not that a socket was closed. */
  static <T> T answer(Supplier<T> question) {
    try {
      return Thread.currentThread() instanceof UninterruptibleThread thread
          ? thread.runUninterruptibly(Scala.call(question))
          : question.get();
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

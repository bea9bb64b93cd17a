package sparkrowtime.source;

import java.io.EOFException;
import java.net.SocketException;
import java.util.function.Supplier;

/** The Python process that plans a stream's reads while the query runs. It may be killed. */
final class Planner {
  private Planner() {}

  /** The answer of the process. If it has ended, the error says so, and not that a socket was closed. */
  static <T> T answer(Supplier<T> question) {
    try {
      return question.get();
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

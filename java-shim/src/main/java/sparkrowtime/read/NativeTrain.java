package sparkrowtime.read;

import java.io.Serializable;

/**
 * Where the bytes of one train are, and which of its rows belong to the batch: those with a rowtime in
 * [low, high), in microseconds. Made on the driver, read in a task.
 *
 * @param file the file with the bytes; if they travel with the train, the path of the stream
 * @param checksum CRC-32 of the bytes
 * @param content the bytes, which come from a database that no task talks to; null if they are in the file
 */
record NativeTrain(
    String file,
    long offset,
    int length,
    int checksum,
    int rows,
    long seq,
    String producer,
    long low,
    long high,
    byte[] content)
    implements Serializable {

  /** The error for bytes that differ from those that were written, in the words of the Python side. */
  IllegalStateException corrupt(String what, Exception cause) {
    return new IllegalStateException(
        "StoreCorruptError: " + file + (travels() ? "" : ", offset " + offset) + ": " + what + "; so train " + seq
            + " of " + producer + " cannot be read. Restore the "
            + (travels() ? "database from a backup." : "file from a copy."),
        cause);
  }

  boolean travels() {
    return content != null;
  }

  boolean isWhole() {
    return low == Long.MIN_VALUE && high == Long.MAX_VALUE;
  }
}

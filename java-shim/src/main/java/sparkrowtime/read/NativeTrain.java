package sparkrowtime.read;

import java.io.Serializable;

/**
 * Where the bytes of one train are, and which of its rows belong to the batch: those with a rowtime in
 * [low, high), in microseconds. Made on the driver, read in a task.
 *
 * @param checksum CRC-32 of the bytes
 */
record NativeTrain(
    String file, long offset, int length, int checksum, int rows, long seq, String producer, long low, long high)
    implements Serializable {

  /** The error for bytes that differ from those that were written, in the words of the Python side. */
  IllegalStateException corrupt(String what, Exception cause) {
    return new IllegalStateException(
        "StoreCorruptError: " + file + ", offset " + offset + ": " + what + "; so train " + seq + " of "
            + producer + " cannot be read. Restore the file from a copy.",
        cause);
  }

  boolean isWhole() {
    return low == Long.MIN_VALUE && high == Long.MAX_VALUE;
  }
}

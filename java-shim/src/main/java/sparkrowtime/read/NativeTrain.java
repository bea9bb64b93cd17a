package sparkrowtime.read;

import java.io.Serializable;

/**
 * Where the bytes of one train are, and which of its rows belong to the batch: those with a rowtime in
 * [low, high), in microseconds. Made on the driver, read in a task.
 *
 * @param file the file with the bytes; the URL of an object; if they travel with the train, the path of
 *     the stream
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
            + (travels() ? "database from a backup." : isObject() ? "object from a copy." : "file from a copy."),
        cause);
  }

  /** The error for bytes that are no longer there. */
  IllegalStateException gone(Exception cause) {
    if (!isObject()) {
      return corrupt("the file is gone", cause);
    }
    return new IllegalStateException(
        "DataLostError: The object " + file + " is gone, although a commit names it; so train " + seq + " of "
            + producer + " cannot be read. If it is in a shared folder, mount that on this machine. If `rowtime gc` "
            + "has not removed it, restore the object from a copy.",
        cause);
  }

  /** The error for an object that cannot be read just now. */
  IllegalStateException unavailable(Exception cause) {
    return new IllegalStateException(
        "StoreUnavailableError: " + file + " cannot be read just now (" + cause + "); so train " + seq + " of "
            + producer + " cannot be read. Start the query again once the location of the stream can be used.",
        cause);
  }

  /** Whether Hadoop reads the object; one in a folder is read as a file. */
  boolean isInHadoop() {
    return isObject() && NativeFiles.isInHadoop(file);
  }

  boolean isObject() {
    return !travels() && !file.startsWith("/");
  }

  boolean travels() {
    return content != null;
  }

  boolean isWhole() {
    return low == Long.MIN_VALUE && high == Long.MAX_VALUE;
  }
}

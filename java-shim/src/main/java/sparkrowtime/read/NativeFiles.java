package sparkrowtime.read;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.util.Utils;

/**
 * Reads the bytes of trains, which are in files or objects, or travel with the trains, and checks them.
 * Keeps the last files open. For one task.
 */
final class NativeFiles implements AutoCloseable {
  private static final int OPEN_FILES = 64;
  private static final String WRONG_CHECKSUM = "the checksum does not match";

  private static final String FOLDER = "file://";

  private final Map<String, FileChannel> open = new LinkedHashMap<>(16, 0.75f, true);
  private final HadoopObjects objects;

  NativeFiles(Configuration hadoop) {
    this.objects = new HadoopObjects(hadoop);
  }

  /** The whole message. The caller releases it. */
  ArrowBuf read(NativeTrain train, BufferAllocator allocator) {
    ArrowBuf bytes = allocator.buffer(train.length());
    try {
      ByteBuffer into = bytes.nioBuffer(0, train.length());
      if (train.travels()) {
        into.put(ofLength(train.content(), train));
      } else {
        fill(into, train);
      }
      check(into.flip(), train);
      return bytes;
    } catch (RuntimeException | Error e) {
      bytes.close();
      throw e;
    }
  }

  private void fill(ByteBuffer into, NativeTrain train) {
    try {
      if (train.isInHadoop()) {
        objects.fill(into, train.file(), train.offset());
        return;
      }
      FileChannel file = channel(path(train.file()));
      for (int n = 0; n >= 0 && into.hasRemaining(); ) {
        n = file.read(into, train.offset() + into.position());
      }
    } catch (NoSuchFileException | FileNotFoundException e) {
      throw isSeen(train) ? train.gone(e) : unseen(train, e);
    } catch (IOException e) {
      throw train.isObject() ? train.unavailable(e) : new UncheckedIOException(e);
    }
  }

  /** The path of a file, or of an object in a folder. */
  private static String path(String file) {
    return file.startsWith(FOLDER) ? file.substring(FOLDER.length()) : file;
  }

  /** Whether a file is an object that Hadoop reads; one in a folder is read as a file. */
  static boolean isInHadoop(String file) {
    return !path(file).startsWith("/");
  }

  /** Whether tasks can read this file or object. Under a locale such as C, Java cannot name all paths. */
  static boolean canRead(String file, Configuration hadoop) {
    try {
      return isInHadoop(file) ? HadoopObjects.know(file, hadoop) : Path.of(path(file)) != null;
    } catch (InvalidPathException e) {
      return false;
    }
  }

  /** Whether this machine sees the place of the bytes. */
  private static boolean isSeen(NativeTrain train) {
    return train.isObject() || Files.exists(Path.of(train.file()).getParent());
  }

  private static IllegalStateException unseen(NativeTrain train, Exception cause) {
    return new IllegalStateException(
        "StoreUnavailableError: the stream of the file " + train.file() + " is in a directory of the driver's machine,"
            + " which the executor on " + Utils.localHostName() + " does not see, or was deleted. On a"
            + " cluster, use a stream in a database: rt.copyStream copies it to postgresql://host:port/database/stream."
            + " Or run Spark on that machine alone (master local[*]).",
        cause);
  }

  private static byte[] ofLength(byte[] content, NativeTrain train) {
    if (content.length != train.length()) {
      throw train.corrupt(WRONG_CHECKSUM, null);
    }
    return content;
  }

  private static void check(ByteBuffer bytes, NativeTrain train) {
    if (bytes.remaining() != train.length()) {
      throw train.corrupt(
          "the file ends after " + bytes.remaining() + " of " + train.length() + " bytes", null);
    }
    CRC32 checksum = new CRC32();
    checksum.update(bytes);
    if ((int) checksum.getValue() != train.checksum()) {
      throw train.corrupt(WRONG_CHECKSUM, null);
    }
  }

  private FileChannel channel(String file) throws IOException {
    FileChannel channel = open.get(file);
    if (channel == null) {
      channel = FileChannel.open(Path.of(file));
      open.put(file, channel);
      if (open.size() > OPEN_FILES) {
        open.remove(open.keySet().iterator().next()).close();
      }
    }
    return channel;
  }

  @Override
  public void close() {
    try (objects) {
      for (FileChannel channel : open.values()) {
        channel.close();
      }
      open.clear();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

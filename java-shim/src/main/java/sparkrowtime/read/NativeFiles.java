package sparkrowtime.read;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
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
    try {
      FileChannel file = train.travels() || train.isInHadoop() ? null : channel(train);
      requireThere(train, file);
      return filled(train, file, allocator);
    } catch (NoSuchFileException | FileNotFoundException e) {
      throw isSeen(train) ? train.gone(e) : unseen(train, e);
    } catch (IOException e) {
      throw train.isObject() ? train.unavailable(e) : new UncheckedIOException(e);
    }
  }

  /** So no memory is taken for bytes that are not there. What an object in Hadoop has is seen when it is read. */
  private static void requireThere(NativeTrain train, FileChannel file) throws IOException {
    boolean fits = !train.travels() || train.content().length == train.length();
    if (train.length() < 0 || train.offset() < 0 || !fits) {
      throw train.corrupt(WRONG_CHECKSUM, null);
    }
    if (file != null) {
      requireAll(Math.max(file.size() - train.offset(), 0), train);
    }
  }

  private ArrowBuf filled(NativeTrain train, FileChannel file, BufferAllocator allocator) throws IOException {
    ArrowBuf bytes = allocator.buffer(train.length());
    try {
      ByteBuffer into = bytes.nioBuffer(0, train.length());
      fill(into, train, file);
      check(into.flip(), train);
      return bytes;
    } catch (IOException | RuntimeException | Error e) {
      bytes.close();
      throw e;
    }
  }

  private void fill(ByteBuffer into, NativeTrain train, FileChannel file) throws IOException {
    if (train.travels()) {
      into.put(train.content());
    } else if (file == null) {
      objects.fill(into, train.file(), train.offset());
    } else {
      for (int n = 0; n >= 0 && into.hasRemaining(); ) {
        n = file.read(into, train.offset() + into.position());
      }
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

  private static void requireAll(long there, NativeTrain train) {
    if (there < train.length()) {
      throw train.corrupt("the file ends after " + there + " of " + train.length() + " bytes", null);
    }
  }

  private static void check(ByteBuffer bytes, NativeTrain train) {
    requireAll(bytes.remaining(), train);
    CRC32 checksum = new CRC32();
    checksum.update(bytes);
    if ((int) checksum.getValue() != train.checksum()) {
      throw train.corrupt(WRONG_CHECKSUM, null);
    }
  }

  private FileChannel channel(NativeTrain train) throws IOException {
    FileChannel channel = open.get(train.file());
    if (channel == null) {
      channel = opened(train);
      open.put(train.file(), channel);
      if (open.size() > OPEN_FILES) {
        open.remove(open.keySet().iterator().next()).close();
      }
    }
    return channel;
  }

  /** A stream's files are never links; to open a pipe would wait for who writes into it. */
  private static FileChannel opened(NativeTrain train) throws IOException {
    Path file = Path.of(path(train.file()));
    if (train.isObject()) {
      return FileChannel.open(file);
    }
    if (Files.exists(file, LinkOption.NOFOLLOW_LINKS) && !Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      throw train.corrupt("it is a link or a device, and no file", null);
    }
    return FileChannel.open(file, StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS);
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

package sparkrowtime.read;

import java.io.EOFException;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Reads objects through the file system that Hadoop has for their scheme. Keeps one open. For one task. */
final class HadoopObjects implements AutoCloseable {
  private final Configuration configuration;
  private String url;
  private FSDataInputStream open;

  HadoopObjects(Configuration configuration) {
    this.configuration = configuration;
  }

  /** Whether Hadoop has a file system for the scheme of this URL. */
  static boolean know(String url, Configuration configuration) {
    try {
      return FileSystem.getFileSystemClass(URI.create(url).getScheme(), configuration) != null;
    } catch (IOException | RuntimeException | LinkageError e) { // its class may be missing, or what it needs
      return false;
    }
  }

  /** Fills {@code into} with the bytes from {@code offset} on, or with as many as there are. */
  void fill(ByteBuffer into, String url, long offset) throws IOException {
    if (!url.equals(this.url)) {
      close();
      Path path = new Path(URI.create(url));
      open = path.getFileSystem(configuration).open(path);
      this.url = url;
    }
    byte[] bytes = new byte[into.remaining()];
    try {
      open.readFully(offset, bytes);
      into.put(bytes);
    } catch (EOFException e) {
      // what is missing is reported with the train
    }
  }

  @Override
  public void close() throws IOException {
    if (open != null) {
      open.close();
      open = null;
      url = null;
    }
  }
}

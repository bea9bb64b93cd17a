package sparkrowtime.query;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution;

/**
 * A text file in a query's checkpoint. Those beside Spark's offset log keep what the first run of the query was like, if
 * Spark's own files do not contain that. Used once a run, in the query's thread.
 */
final class CheckpointFile {
  private final Path root;
  private final Path file;
  private final Path next;
  private final CheckpointFileManager files;

  CheckpointFile(MicroBatchExecution query, String name) {
    root = new Path(query.resolvedCheckpointRoot());
    file = new Path(root, name);
    next = new Path(root, name + ".new");
    files = CheckpointFileManager.create(root, query.sparkSessionForStream().sessionState().newHadoopConf());
  }

  /**
   * The text of the query's first run. A new query, or one whose checkpoint has no such file yet, gets the
   * file with {@code now}.
   */
  String first(boolean isNew, String now) {
    String text = isNew ? null : text();
    if (text != null) {
      return text;
    }
    replace(now);
    return now;
  }

  /** The text; null if there is no such file. */
  String text() {
    try {
      return files.exists(file) ? read(file) : files.exists(next) ? read(next) : null;
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + file + ".", e);
    }
  }

  /** Replaces the text. Law (<i>whole</i>): after a crash {@link #text} is the old one or the new one. */
  void replace(String text) {
    try {
      if (files.exists(file)) { // which Spark's rename does not replace everywhere
        files.delete(next);
        write(next, text);
        files.delete(file);
      }
      write(file, text);
      files.delete(next);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot write " + file + ".", e);
    }
  }

  /** Removes the file, if there is one. */
  void remove() {
    files.delete(file);
  }

  Path checkpoint() {
    return root;
  }

  @Override
  public String toString() {
    return file.toString();
  }

  private String read(Path from) throws IOException {
    try (var in = files.open(from)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private void write(Path to, String text) throws IOException {
    try (var out = files.createAtomic(to, false)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }
}

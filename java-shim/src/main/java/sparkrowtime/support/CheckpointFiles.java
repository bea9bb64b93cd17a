package sparkrowtime.support;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;
import org.apache.spark.unsafe.Platform;

/** The files of a checkpoint, written as Spark's class writes them; on a local disk by {@link LocalFiles}. */
public final class CheckpointFiles extends FileSystemBasedCheckpointFileManager {
  public CheckpointFiles(Path path, Configuration hadoop) throws IOException {
    super(path, LocalFiles.in(path, hadoop));
  }

  /**
   * Gives a written file its name.
   *
   * <p>Law (<i>one writer</i>): of those that give a file the same name without overwriting, as two queries with one
   * checkpoint do, one succeeds. Spark's class looks whether the name is there, and then renames.
   */
  @Override
  public void renameTempFile(Path written, Path named, boolean overwrites) {
    try {
      if (overwrites || !(fs() instanceof LocalFiles local) || !local.link(written, named)) {
        super.renameTempFile(written, named, overwrites);
      }
    } catch (IOException error) { // which Scala does not declare
      Platform.throwException(error);
    }
  }
}

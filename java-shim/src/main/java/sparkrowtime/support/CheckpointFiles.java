package sparkrowtime.support;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/** The files of a checkpoint, written as Spark's class writes them; on a local disk by {@link LocalFiles}. */
public final class CheckpointFiles extends FileSystemBasedCheckpointFileManager {
  public CheckpointFiles(Path path, Configuration hadoop) throws IOException {
    super(path, LocalFiles.in(path, hadoop));
  }
}

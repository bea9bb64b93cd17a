package sparkrowtime.analysis;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import sparkrowtime.support.Scala;

/**
 * Refuses a checkpoint whose file {@code metadata}, which has the query's id, is truncated or overwritten. Spark's own
 * error names neither the file nor what to do. What cannot be read for another reason is left to Spark.
 */
final class RefuseDamagedCheckpoint {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private RefuseDamagedCheckpoint() {}

  static void check(WriteToStreamStatement query) {
    String checkpoint = Scala.orNull(query.userSpecifiedCheckpointLocation());
    if (checkpoint != null && isDamaged(new Path(checkpoint, "metadata"), query)) {
      throw new IllegalArgumentException(
          "The file metadata in the checkpoint " + checkpoint + " is damaged: it does not have the id of a query, under"
              + " which the output knows what is written already. Restore the file from a backup of the checkpoint, or"
              + " start the query with a new checkpointLocation and a new output.");
    }
  }

  private static boolean isDamaged(Path file, WriteToStreamStatement query) {
    try {
      FileSystem files = file.getFileSystem(query.hadoopConf());
      return files.exists(file) && !hasId(files, file);
    } catch (ChecksumException e) {
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private static boolean hasId(FileSystem files, Path file) throws IOException {
    try (var in = files.open(file)) {
      return MAPPER.readTree(in.readAllBytes()).path("id").isTextual();
    } catch (JsonProcessingException e) {
      return false;
    }
  }
}

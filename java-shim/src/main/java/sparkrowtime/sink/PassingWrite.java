package sparkrowtime.sink;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** The write of a batch, of which a part is done otherwise; all else is that of another one. */
abstract class PassingWrite implements BatchWrite {
  private final BatchWrite write;

  PassingWrite(BatchWrite write) {
    this.write = write;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return write.createBatchWriterFactory(info);
  }

  @Override
  public boolean useCommitCoordinator() {
    return write.useCommitCoordinator();
  }

  @Override
  public void onDataWriterCommit(WriterCommitMessage message) {
    write.onDataWriterCommit(message);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    write.commit(messages);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    write.abort(messages);
  }
}

package sparkrowtime.sink;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import sparkrowtime.query.BoundedQuery;

/** The write of one batch of a query with bounds, of which a part is done otherwise; all else is Spark's. */
abstract class PassingWrite implements BatchWrite {
  final MicroBatchWrite batch;
  final BoundedQuery query;

  PassingWrite(MicroBatchWrite batch, BoundedQuery query) {
    this.batch = batch;
    this.query = query;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return batch.createBatchWriterFactory(info);
  }

  @Override
  public boolean useCommitCoordinator() {
    return batch.useCommitCoordinator();
  }

  @Override
  public void onDataWriterCommit(WriterCommitMessage message) {
    batch.onDataWriterCommit(message);
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    batch.commit(messages);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    batch.abort(messages);
  }
}

package sparkrowtime.python;

import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A stream of a query that the Python side of this library reads: its options, and what it can be asked. */
public abstract class RowtimeStream implements MicroBatchStream {
  /** The option that {@link sparkrowtime.analysis.TopicUnion} adds: the id of this use of a stream of bounds. */
  public static final String UNION_ID = "topicBoundsId";

  /** The option that it adds where bounds are derived from the topics: what the Python side has to know of these. */
  public static final String WATCHED = "watched";

  private final Questions questions;
  private final Map<String, String> described;
  private final boolean punctuates;
  private final String unionId;
  private int late;

  protected RowtimeStream(Questions questions, CaseInsensitiveStringMap options) {
    this.questions = questions;
    this.described = ReadOptions.described(options);
    this.punctuates = options.getBoolean("punctuate", false);
    this.unionId = options.get(UNION_ID);
  }

  public final Questions questions() {
    return questions;
  }

  /** Option punctuate: this stream's bound also holds for the ordinary sources that it is mixed with. */
  public final boolean punctuates() {
    return punctuates;
  }

  /** Whether these are the late rows of a stream. A later one may have any time, until the stream has ended. */
  public final boolean isOfLateRows() {
    return "rejected".equalsIgnoreCase(described.get("view"));
  }

  /** The id of this use of a stream of bounds beside topics; null for other streams. */
  public final String unionId() {
    return unionId;
  }

  /** What a status has of this source besides its position. */
  public final Map<String, String> described() {
    return described;
  }

  /** Where the rowtime stream is; null if its options do not name it. */
  public final String path() {
    return described.get("path");
  }

  /** The number of late rows of the last batch, for the query's progress. */
  public final void late(int rows) {
    late = rows;
  }

  protected final int late() {
    return late;
  }
}

package sparkrowtime.python;

import java.util.Map;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * How far a stream has come, for the progress of its query.
 *
 * @param offset the latest offset
 * @param metrics the stream's metrics, as far as they have a value
 */
public record Latest(Offset offset, Map<String, String> metrics) {}

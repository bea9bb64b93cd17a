package sparkrowtime;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.types.TimestampType;

/** The names and marks by which this library knows its own columns. */
final class Rowtime {
  static final String SOURCE = "rowtime";
  static final String COLUMN = "rowtime";

  private Rowtime() {}

  static boolean isRowtime(Attribute a) {
    return a.name().equals(COLUMN) && a.dataType() instanceof TimestampType;
  }

  /** Spark's mark on the column of a watermark node, which it keeps through renames and windows. */
  static boolean isWatermarked(Attribute a) {
    return a.metadata().contains(EventTimeWatermark.delayKey());
  }
}

package sparkrowtime.support;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.TimestampType;

/** The names and marks by which this library recognizes its own columns, and its switches. */
public final class Rowtime {
  public static final String SOURCE = "rowtime";
  public static final String COLUMN = "rowtime";

  /** The metadata key with the input column whose floor a state function's output column follows. */
  public static final String FOLLOWS = "rowtime.follows";

  /** The metadata key with for how long a state function of this library keeps which rows. */
  public static final String KEPT_BY = "rowtime.keptBy";

  private Rowtime() {}

  /** Whether a native path is on in the session of this thread. All are on unless a test turns them off. */
  public static boolean isOn(String path) {
    return Boolean.parseBoolean(SQLConf.get().getConfString(path, "true"));
  }

  public static boolean follows(Attribute a) {
    return a.metadata().contains(FOLLOWS);
  }

  public static boolean isRowtime(Attribute a) {
    return a.name().equals(COLUMN) && a.dataType() instanceof TimestampType;
  }

  /** Whether a column has Spark's mark of a watermark node. Renames and windows keep the mark. */
  public static boolean isWatermarked(Attribute a) {
    return isWatermarked(a.metadata());
  }

  /** The same for a column or a field with this metadata. */
  public static boolean isWatermarked(Metadata of) {
    return of.contains(EventTimeWatermark.delayKey());
  }
}

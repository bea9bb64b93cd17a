package sparkrowtime.analysis;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.MicrosToTimestamp;
import org.apache.spark.sql.catalyst.expressions.MillisToTimestamp;
import org.apache.spark.sql.catalyst.expressions.ParseToTimestamp;
import org.apache.spark.sql.catalyst.expressions.SecondsToTimestamp;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import sparkrowtime.bounds.Origin;

/**
 * What the Python side has to know of topics from which it derives bounds: the options of Spark's source, and which field
 * of a message the time is. The expressions by which that is known are a closed list; for others it has no field.
 */
final class WatchedTopic {
  /** The option of a stream of bounds that are derived from the topics beside it. */
  static final String OPTION = "watch";

  private static final int DIGITS_OF_MICROS = 6;
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Map<Class<?>, String> UNITS =
      Map.of(SecondsToTimestamp.class, "s", MillisToTimestamp.class, "ms", MicrosToTimestamp.class, "us");

  private final LogicalPlan rows;
  private final StreamingRelationV2 topic;

  /**
   * @param rows the rows of the topics, as they are punctuated
   */
  WatchedTopic(LogicalPlan rows, StreamingRelationV2 topic) {
    this.rows = rows;
    this.topic = topic;
  }

  /** As a text of JSON. */
  String described(Attribute time) {
    ObjectNode all = MAPPER.createObjectNode().put("column", time.name());
    Expression made = definition(time);
    all.put("zone", zone(made));
    all.put("field", field(made)).put("unit", unit(made));
    topic.extraOptions().asCaseSensitiveMap().forEach(all.putObject("options")::put);
    return all.toString();
  }

  /**
   * The time zone of texts without one: that of the expression that reads them, which the session had when it was made. A
   * frame from before the session got another one keeps it, and so does a view.
   */
  private String zone(Expression made) {
    if (made instanceof GetStructField part) {
      return zone(definition(part.child()));
    }
    boolean reads = made instanceof TimeZoneAwareExpression aware && aware.timeZoneId().isDefined();
    return reads ? ((TimeZoneAwareExpression) made).timeZoneId().get() : SQLConf.get().sessionLocalTimeZone();
  }

  /** The unit of a number that becomes a time; null for a text. */
  private static String unit(Expression made) {
    boolean seconds = made instanceof Cast cast && cast.child().dataType() instanceof NumericType;
    return seconds ? "s" : UNITS.get(made.getClass());
  }

  /** The path of the field, with points; null where it is not known. */
  private String field(Expression made) {
    if (made instanceof Attribute column) {
      return isOfTopic(column, "timestamp") ? "kafka.timestamp" : null;
    }
    boolean text = made instanceof ParseToTimestamp parsed && parsed.format().isEmpty() && isText(parsed.left());
    boolean cast = made instanceof Cast c && (isText(c.child()) || isExact(c.child()));
    boolean read = text || cast || UNITS.containsKey(made.getClass()) && isExact(made.children().apply(0));
    return path(read ? definition(made.children().apply(0)) : made);
  }

  private String path(Expression made) {
    if (!(made instanceof GetStructField part) || part.extractFieldName().contains(".")) {
      return null;
    }
    Expression record = definition(part.child());
    if (record instanceof JsonToStructs json) {
      return json.options().isEmpty() && isValue(json.child()) ? part.extractFieldName() : null;
    }
    String outer = path(record);
    return outer == null ? null : outer + "." + part.extractFieldName();
  }

  /** Whether this is the value of a message as a text. */
  private boolean isValue(Expression text) {
    Expression made = definition(text);
    return made instanceof Cast cast
        && cast.child().dataType() instanceof BinaryType
        && definition(cast.child()) instanceof Attribute column
        && isOfTopic(column, "value");
  }

  private static boolean isText(Expression e) {
    return e.dataType() instanceof StringType;
  }

  /**
   * Whether a number of a message becomes one of this type that is at no earlier microsecond. A DOUBLE can be, and the Python
   * side regards that; FLOAT, and DECIMAL with fewer digits, are rounded by more.
   */
  private static boolean isExact(Expression e) {
    boolean isDecimal = e.dataType() instanceof DecimalType decimal && decimal.scale() >= DIGITS_OF_MICROS;
    return e.dataType() instanceof IntegralType || e.dataType() instanceof DoubleType || isDecimal;
  }

  private boolean isOfTopic(Attribute column, String name) {
    return topic.outputSet().contains(column) && column.name().equals(name);
  }

  /** The expression by which the plan defines a column; a column of the topic as it is. */
  private Expression definition(Expression e) {
    Alias alias = e instanceof Attribute column ? Origin.alias(column, rows) : null;
    return alias == null ? e : definition(alias.child());
  }
}

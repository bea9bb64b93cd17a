package sparkrowtime.analysis;

import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.streaming.runtime.StreamingRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.bounds.Definitions;
import sparkrowtime.support.Scala;
import sparkrowtime.tables.InTable;
import sparkrowtime.tables.TableName;
import sparkrowtime.topics.LateMark;
import sparkrowtime.topics.TopicBounds;

/** Refuses {@code punctuate} where the rows are not those of a Delta or Iceberg table, or their time can be NULL. */
final class RefuseTables {
  /** Settings of Spark, and options of a read, with which files are left out. Iceberg does not have them. */
  private static final String FILES = "spark.sql.files.";
  private static final List<String> IGNORING = List.of("ignoreMissingFiles", "ignoreCorruptFiles");

  private RefuseTables() {}

  static void check(LogicalPlan plan) {
    Definitions definitions = new Definitions(plan);
    plan.foreach(Scala.each(node -> check(node, definitions)));
  }

  private static void check(LogicalPlan node, Definitions definitions) {
    InTable table = InTable.of(node);
    if (table == null) {
      return;
    }
    LogicalPlan rows = ((Filter) node).child();
    Attribute time = column(((Filter) node).condition());
    String problem = problem(table, rows, time);
    if (problem != null) {
      throw RefuseTopics.refused(time.name(), problem);
    }
    RefuseTopics.checkTime(time, rows, definitions);
  }

  private static Attribute column(Expression condition) {
    if (LateMark.time(condition) instanceof Attribute time) {
      return time;
    }
    throw new IllegalArgumentException(
        "rowtime_in_time needs a column, not " + LateMark.time(condition).sql() + ". Select it under a name first.");
  }

  /** What of the column, or below it, is not as it must be, and what to do; null: nothing. */
  private static String problem(InTable table, LogicalPlan rows, Attribute time) {
    LogicalPlan leaf = TopicBounds.leaf(rows);
    if (!time.dataType().equals(DataTypes.TimestampType)) {
      return "the column has the type " + time.dataType().sql() + ". Cast it to TIMESTAMP, which has a time zone";
    } else if (leaf instanceof EventTimeWatermark) {
      return "withWatermark, or another punctuate, is below it. Leave that out: the bounds are the watermark";
    } else if (table.id() == null) {
      return RefuseTopics.source(leaf) + " is below it. The bounds in the commits of a table are about the rows of that table, so"
          + " only select, withColumn and where can be between its source, format(\"delta\") or format(\"iceberg\"), and"
          + " punctuate. For a topic, give the stream that has its bounds: bounds=\"orders-bounds.rowtime\"";
    }
    String problem = leaf instanceof StreamingRelation delta ? problem(delta, table, TableReads.names(time, rows)) : null;
    return problem == null && table.keeps() ? problem(table.rejected()) : problem;
  }

  /** Where the rows are kept, the session is another one, which has not the user's current catalog. */
  private static String problem(TableName rejected) {
    List<String> parts = rejected.format().equals(TableName.ICEBERG)
        ? Scala.list(CatalystSqlParser$.MODULE$.parseMultipartIdentifier(rejected.name()))
        : null;
    return parts == null || parts.size() > 1 && isCatalog(parts.get(0))
        ? null
        : "rejected=\"" + rejected + "\" does not begin with a catalog of this session. Name the whole table:"
            + " rejected=\"iceberg:CATALOG.NAMESPACE.TABLE\"";
  }

  private static boolean isCatalog(String name) {
    return name.equals(CatalogManager.SESSION_CATALOG_NAME()) || SQLConf.get().contains("spark.sql.catalog." + name);
  }

  /**
   * What of a Delta table is not as it must be.
   *
   * @param time the names of the column; null if it is computed
   */
  private static String problem(StreamingRelation delta, InTable table, List<String> time) {
    boolean isOfStatistics = table.declared() != null && table.declared().isOfRows();
    return isOfStatistics && time != null && time.stream().anyMatch(name -> name.contains("."))
        ? "the column " + String.join(" . ", time) + " of the Delta table has a dot in its name, and the statistics of its files"
            + " are found by a path with dots. Take the times of the commits alone (watch={\"bounds\": \"append-time\", \"delay\":"
            + " \"5 minutes\"}), or write the time into a column without a dot"
        : problem(options(delta));
  }

  private static String problem(CaseInsensitiveStringMap options) {
    if (options.getBoolean("readChangeFeed", false) || options.getBoolean("readChangeData", false)) {
      return "it is over a change feed, whose rows are updates and deletes, too. The bounds of a table are about the rows that"
          + " are appended to it. Leave out readChangeFeed";
    } else if (!options.getBoolean("failOnDataLoss", true)) {
      return "failOnDataLoss=false is below it. Rows whose commits were cleaned up before the query has read them would be missing"
          + " from windows that are complete by the bound. Leave the option out";
    }
    return IGNORING.stream().map(name -> ignoring(name, options)).filter(Objects::nonNull).findFirst().orElse(null);
  }

  private static String ignoring(String name, CaseInsensitiveStringMap options) {
    boolean isSet = SQLConf.get().getConfString(FILES + name, "false").equalsIgnoreCase("true");
    return isSet || options.getBoolean(name, false)
        ? (isSet ? FILES : "the option ") + name + "=true leaves out the rows of files that cannot be read, which would be missing from"
            + " windows that are complete by the bound. Set it to false"
        : null;
  }

  private static CaseInsensitiveStringMap options(StreamingRelation table) {
    return new CaseInsensitiveStringMap(CollectionConverters.asJava(table.dataSource().options()));
  }
}

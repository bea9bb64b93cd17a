package sparkrowtime.analysis;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import sparkrowtime.support.Rowtime;
import sparkrowtime.support.Scala;

/**
 * The options of a table {@code USING rowtime}. Spark passes a Python source only the options that a query
 * gives in {@code WITH (...)}, and not those of the table, such as path. This class adds them to the
 * relation, also to one that is written; each also with the prefix that Spark gives it where a table is created.
 *
 * <p>Law: an option of the query overrides one of the table. Adding is idempotent. Relations without a
 * table do not change.
 */
final class TableOptions {
  private static final String SESSION_CATALOG = "spark_catalog";
  private static final String OF_TABLE = "option.";

  private TableOptions() {}

  /** True for a relation of a rowtime table, batch or streaming, and for a write into one. */
  static boolean concern(Object node) {
    return node instanceof V2WriteCommand w && concern(w.table())
        || node instanceof StreamingRelationV2 s && isTable(s.sourceName(), s.catalog(), s.identifier())
        || node instanceof DataSourceV2Relation b && isTable(b.table().name(), b.catalog(), b.identifier());
  }

  private static boolean isTable(String source, Option<CatalogPlugin> catalog, Option<Identifier> id) {
    return source.equalsIgnoreCase(Rowtime.SOURCE)
        && id.isDefined()
        && catalog.isDefined()
        && catalog.get().name().equals(SESSION_CATALOG);
  }

  static LogicalPlan given(LogicalPlan node, SessionCatalog tables) {
    if (!concern(node)) {
      return node;
    } else if (node instanceof V2WriteCommand write) {
      NamedRelation table = (NamedRelation) given((LogicalPlan) write.table(), tables);
      return table == write.table() ? node : (LogicalPlan) write.withNewTable(table);
    } else if (node instanceof StreamingRelationV2 stream) {
      return given(stream, stream.extraOptions(), of(stream.identifier().get(), tables));
    }
    DataSourceV2Relation batch = (DataSourceV2Relation) node;
    return given(batch, batch.options(), of(batch.identifier().get(), tables));
  }

  private static LogicalPlan given(
      LogicalPlan relation, CaseInsensitiveStringMap ofQuery, Map<String, String> ofTable) {
    ofTable.putAll(ofQuery);
    CaseInsensitiveStringMap all = new CaseInsensitiveStringMap(ofTable);
    return all.equals(ofQuery) ? relation : Scala.copy(relation, CaseInsensitiveStringMap.class, all);
  }

  private static Map<String, String> of(Identifier table, SessionCatalog tables) {
    CatalogStorageFormat storage = storage(table, tables);
    Map<String, String> properties = CollectionConverters.asJava(storage.properties());
    Map<String, String> options = new HashMap<>(new CaseInsensitiveStringMap(properties));
    properties.forEach((name, value) -> options.put(OF_TABLE + name, value));
    if (storage.locationUri().isDefined()) {
      options.put("path", CatalogUtils.URIToString(storage.locationUri().get()));
    }
    return options;
  }

  private static CatalogStorageFormat storage(Identifier table, SessionCatalog tables) {
    try {
      return tables.getTableMetadata(new TableIdentifier(table.name(), Option.apply(table.namespace()[0]))).storage();
    } catch (AnalysisException e) {
      throw new IllegalStateException("The table " + table + " was dropped while a query on it was analyzed.", e);
    }
  }
}

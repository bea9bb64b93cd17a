package sparkrowtime.tables;

import java.util.Map;
import sparkrowtime.support.ByName;

/** The numbers of the columns of an Iceberg table, and their names in its earlier schemas. */
final class IcebergColumns {
  private final Object table;
  private final Object now;

  /**
   * @param table Iceberg's table, with the schema that a query begins with
   */
  IcebergColumns(Object table) {
    this.table = table;
    this.now = ByName.call(table, "schema");
  }

  /** The number of a column that the table had when the query began; null if it had none of that name. */
  Integer id(String name) {
    Object field = ByName.call(now, "caseInsensitiveFindField", name);
    return field == null ? null : (Integer) ByName.call(field, "fieldId");
  }

  /**
   * The name of a column when the query began; null if the table then had no such column any more.
   *
   * @param schema the schema in which it had the name; null where that is not known
   */
  String now(String name, Integer schema) {
    Object then = schema == null ? null : ((Map<?, ?>) ByName.call(table, "schemas")).get(schema);
    Object field = then == null ? null : ByName.call(then, "caseInsensitiveFindField", name);
    if (field == null) {
      return name;
    }
    return (String) ByName.call(now, "findColumnName", ByName.call(field, "fieldId"));
  }
}

package rowtime;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;

/**
 * {@code format("rowtime")} by Spark's own rule for short names: the class {@code DefaultSource} of the package that has
 * the name. It is Spark's class for Python data sources, as it is.
 *
 * <p>Spark looks for Python data sources in the thread's active session alone, and a thread that Python has started has
 * none, so {@code writeStream.start()} found no sink there. A class is found from any thread.
 */
public class DefaultSource extends PythonDataSourceV2 {}

import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs SQL statements in a Flink of this process. The property "settings" has lines of the form name=value. */
public final class Statements {
    public static void main(String[] statements) throws InterruptedException {
        Map<String, String> settings = System.getProperty("settings").lines()
            .map(line -> line.split("=", 2)).collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
        TableEnvironment tables = TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(Configuration.fromMap(settings)).build());
        Stream.of(statements).forEach(tables::executeSql);
        Thread.currentThread().join();
    }
}

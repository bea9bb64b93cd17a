package sparkrowtime.analysis;

import org.apache.spark.sql.internal.SQLConf;

/** Refuses settings of Spark with which bounds would be wrong. */
public final class RefuseSettings {
  private RefuseSettings() {}

  public static void check(SQLConf conf) {
    refuse(conf, "spark.sql.streaming.multipleWatermarkPolicy", "min",
        "with several inputs a bound holds only as far as the weakest of them");
    refuse(conf, "spark.sql.streaming.statefulOperator.allowMultiple", "true",
        "the old single-operator mode treats the rows of the batch that carries a bound as late");
  }

  private static void refuse(SQLConf conf, String key, String required, String why) {
    String value = conf.getConfString(key, required);
    if (!value.equalsIgnoreCase(required)) {
      throw new IllegalArgumentException(
          "A query over a rowtime stream needs " + key + "=" + required + ", but it is " + value
              + ": " + why + ". Set it back, or read with option bounds=ignore.");
    }
  }
}

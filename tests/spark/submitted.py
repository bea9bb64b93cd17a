"""A program for spark-submit: builds its session as the tutorial does, and says which extensions it has."""

from pyspark.sql import SparkSession

import spark_rowtime as rt

spark = rt.configure(SparkSession.builder.appName("submitted")).getOrCreate()
print("extensions:", spark.conf.get("spark.sql.extensions"))

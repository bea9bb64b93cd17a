"""The Spark data source, sink and session settings. Besides the operators, only this package imports PySpark."""

from spark_rowtime.spark.jars import check_pyspark

check_pyspark()

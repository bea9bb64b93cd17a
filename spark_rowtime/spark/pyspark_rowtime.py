"""The top-level module ``pyspark_rowtime``, in which Spark looks for ``format("rowtime")``."""

from spark_rowtime.spark.datasource import RowtimeDataSource as DefaultSource

__all__ = ["DefaultSource"]

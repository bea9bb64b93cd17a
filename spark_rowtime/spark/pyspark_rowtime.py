"""Where Spark itself looks for ``format("rowtime")``: a top-level module ``pyspark_rowtime``."""

from spark_rowtime.spark.datasource import RowtimeDataSource as DefaultSource

__all__ = ["DefaultSource"]

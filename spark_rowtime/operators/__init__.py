"""Operators that Spark's SQL lacks on streams. The bound makes their results final.

Each takes DataFrames and returns one. The rowtime column stays, so that windows, joins or a rowtime
sink may follow. On batch DataFrames each operator is the SQL whose results it equals.
On streams they need Spark's RocksDB state store and the pip extra ``operators``.
"""

import spark_rowtime.spark  # noqa: F401  (first: it says which PySpark is needed)
from spark_rowtime.operators.asof import asofJoin
from spark_rowtime.operators.match_recognize import matchRecognize
from spark_rowtime.operators.sliding import cascadingAggregate, slidingAggregate

__all__ = ["asofJoin", "cascadingAggregate", "matchRecognize", "slidingAggregate"]

"""Operators that Spark's SQL lacks on streams, each made final by the bound.

Each takes a DataFrame and gives one; the rowtime column stays, and goes on into windows, joins or a
rowtime sink. On a batch DataFrame each is the plain SQL window function whose results it equals.
They need Spark's RocksDB state store and the pip extra ``operators``.
"""

from spark_rowtime.operators.cascading import cascadingAggregate
from spark_rowtime.operators.sliding import slidingAggregate

__all__ = ["cascadingAggregate", "slidingAggregate"]

"""A join of the streams ``l`` and ``r``, streamed and as a batch over the same rows."""

from typing import Any

from pyspark.sql import DataFrame

from tests.spark.observed_query import clock
from tests.streams import Pipe

TYPES = ["INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI"]
KEEPING_UNMATCHED = ["LEFT OUTER", "RIGHT OUTER", "FULL OUTER"]


def streamed(pipe: Pipe, sql: str) -> DataFrame:
    """``sql`` over {l} and {r} as streams."""
    return pipe.spark.sql(sql, l=pipe.read("l"), r=pipe.read("r"))


def as_batch(pipe: Pipe, sql: str) -> list[tuple[Any, ...]]:
    """The rows of ``sql`` over all rows of {l} and {r}, times as clock times."""
    tables = {name: pipe.spark.read.format("rowtime").load(pipe.path(name)) for name in ("l", "r")}
    return in_order(tuple(clock(value) for value in row) for row in pipe.spark.sql(sql, **tables).collect())


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    """The rows sorted by their text, so that values of any types can be sorted."""
    return sorted(rows, key=str)


def sql_join(how: str, on: str) -> str:
    """A join of both streams, each with the columns ``rowtime`` and ``k``."""
    right = "" if how == "LEFT SEMI" else ", {r}.rowtime AS rt, {r}.k AS rk"
    return f"SELECT {{l}}.rowtime AS lt, {{l}}.k AS lk{right} FROM {{l}} {how} JOIN {{r}} ON {on}"

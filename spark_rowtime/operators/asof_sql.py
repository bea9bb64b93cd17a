"""What tasks run for an ASOF JOIN in SQL, which the extension makes an as-of join as `asofJoin` does.

Java writes pickles that call these functions with the type of their result and their arguments, both as JSON. Each
returns what Spark expects in such a pickle: a function of Python, and the type of its result.
"""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils
from pyspark.sql.types import StructType

from spark_rowtime.operators.asof_match import AsOf
from spark_rowtime.operators.asof_pack import packer
from spark_rowtime.operators.asof_processor import AsOfProcessor
from spark_rowtime.operators.bucketed import BUCKETS
from spark_rowtime.operators.chunks import unpacker
from spark_rowtime.operators.columns import in_arrow

TIME = "time"
"""The name that Java gives the times of both sides."""
Task = tuple[Callable[..., Any], StructType]


def packed(schema: bytes, arguments: str) -> Task:
    """Packs the rows of one side."""
    return packer(json.loads(arguments)["side"], BUCKETS), _type(schema)


def joined(schema: bytes, arguments: str) -> Task:
    """Keeps the rows of both sides until they are complete, and gives each left row its right row."""
    given = json.loads(arguments)
    asof = AsOf(given["keys"], TIME, "backward", None)
    processor = AsOfProcessor(asof, in_arrow(_type(given["added"])), inner=given["inner"])
    return TransformWithStateInPandasUdfUtils(processor, "EventTime").transformWithStateUDF, _type(schema)


def unpacked(schema: bytes, arguments: str) -> Task:
    """Unpacks the rows of the result."""
    del arguments
    rows = _type(schema)
    return unpacker(in_arrow(rows), TIME, 0), rows


def _type(schema: str | bytes) -> StructType:
    return StructType.fromJson(json.loads(schema))

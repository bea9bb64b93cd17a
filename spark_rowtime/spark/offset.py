"""A position as Spark's offset log holds it, and the handshake with the extension."""

from typing import Any

from spark_rowtime.errors import ShimMissingError
from spark_rowtime.reader.release import load_position
from spark_rowtime.store.base import Position

SINCE = "since"
"""In each offset: the startingPosition of the query's first run, where it was a time, in microseconds."""

SHIM = "shim"
"""The extension adds this key to the start offset that it hands over, never to what is logged."""

READER = "reader"
"""And this one: where the checkpoint of this source of the query is, its name in the stream's retention."""

ALONE = "alone"
"""And this one: whether the query has no other source, which would wait while this one does."""

PLAN = "plan"
"""With this key in it, too, a start offset is the extension's question what a batch up to ``end`` reads."""

LEAST_SENT = "leastSent"
"""With this key in it, too, it is the question for the least rowtime from that time on that was sent up to it."""


def start_position(offset: dict[str, Any], stream: str, order: str, require: bool) -> Position:
    """The position of a start offset; ShimMissingError where bounds are required and nobody carries them."""
    if require and SHIM not in offset:
        raise ShimMissingError(
            "This Spark session does not have the extension that moves the watermark by the stream's bounds. "
            "Build the session with spark_rowtime.configure(SparkSession.builder), or set spark.jars to what "
            "`rowtime jar` prints and spark.sql.extensions to sparkrowtime.RowtimeExtensions. To read the rows "
            "without their bounds, say option('bounds', 'ignore')."
        )
    return load_position(offset, stream, order)

"""The form of a position in Spark's offset log, and the keys that the extension adds to a start offset.

An offset is a flat JSON object. It has the id of the stream and the order in which it is read, the three numbers of the
position (see ``Position``; ``floor`` is the bound that moves the watermark), and ``since``:

    {"stream": "f6c0...", "order": "rowtime", "seq": 7, "cut": null, "floor": 1157968800000000, "since": null}

``dump_position`` and ``load_position`` in ``reader/release.py`` write and read all but ``since``.
"""

from typing import Any

from spark_rowtime.errors import InvalidOptionError, ShimMissingError
from spark_rowtime.reader.release import load_position
from spark_rowtime.store.base import Position, Store

SINCE = "since"
"""Key in each offset: the startingPosition of the query's first run in microseconds, if it was a time."""

SHIM = "shim"
"""Key that the extension adds to the start offset that it passes on. It is never in a logged offset."""

READER = "reader"
"""Likewise: the checkpoint folder of this source of the query, which is the reader's name in the stream's retention."""

NEWS = "news"
"""Likewise: makes the start offset a question: do news come within ``seconds``, here or in the ``streams``?"""

PLAN = "plan"
"""Likewise: makes the start offset a request of the extension for what a batch up to ``end`` reads."""

LEAST_SENT = "leastSent"
"""Likewise: makes the start offset a request for the least rowtime at or above this time that was sent up to it."""

ACCOUNT = "account"
"""Likewise: what the query tells about its last batch, as JSON; only where it is new."""

FLOOR_AT = "floorAt"
"""Likewise: makes the start offset a request for the floor of bounds beside topics, at these end offsets of the topics
and with the bounds up to the position of the start offset."""

TOPIC_IDS = "topicIds"
"""Likewise: makes the start offset the question whether bounds are about the topics that have these ids now."""

LATE = "late"
"""Likewise: makes the start offset a request to keep the late rows of a batch of topics."""

ENDED = "ended"
"""Likewise: makes the start offset the message that the query has ended, with its ``error`` or null."""


def start_position(offset: dict[str, Any], store: Store, order: str, require: bool) -> Position:
    """Returns the position of a start offset.

    Raises ShimMissingError if bounds are required but the extension, which carries them, is missing. Raises
    InvalidOptionError for an offset of another kind of source.
    """
    if require and SHIM not in offset:
        raise ShimMissingError(
            "This Spark session does not have the extension that moves the watermark by the stream's bounds. "
            "Build the session with spark_rowtime.configure(SparkSession.builder), or set spark.jars to what "
            "`rowtime jar` prints and spark.sql.extensions to sparkrowtime.RowtimeExtensions. To read the rows "
            "without their bounds, set option('bounds', 'ignore')."
        )
    if "stream" not in offset:
        raise InvalidOptionError(
            "The checkpoint of this query began with another source: it has no position in a rowtime stream. Start the "
            "query with a new checkpointLocation and a new output."
        )
    return load_position(offset, store.stream, order, store.ancestors)

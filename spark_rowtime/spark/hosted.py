"""An adapter hosted by a Spark query: ``option("adapter", "my_feed:MyFeed")``."""

from spark_rowtime.adapter import load
from spark_rowtime.stream import createStream


def ensure_stream(adapter: str, path: str) -> None:
    """Creates the stream at ``path`` from the adapter's schema if it is not there."""
    createStream(path, load(adapter).schema, existOk=True)

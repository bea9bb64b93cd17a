"""``rowtime send --cut``: a bound alone, with the offsets of Kafka's topics that it follows."""

import json
from typing import Any

import click

from spark_rowtime.bounds.topic_cut import offsets_of, to_cut
from spark_rowtime.cli.cuts import show_offsets
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.stream import describeStream

OPTIONS = {"--cut", "--final", "--name", "--complete", "--tz"}


def send_cut(stream: str, name: str | None, final: str | None, cut: str, tz: str | None, *, complete: bool) -> str:
    """Sends a bound of one producer, which stays attached; returns what was done."""
    if name is None or final is None:
        raise click.UsageError("--cut needs --final, the bound, and --name, the producer.")
    offsets = _offsets(cut)
    sink = openSink(stream, producer=name, rowsImplyBounds=False, lease=None)
    try:
        sink.sendRowtimeBound(final, tz=tz, cut=offsets)
        sink.flush()
        if complete:
            sink.close(complete=True)
    finally:
        sink.abandon()
    return (
        f"{stream}: a bound was sent by {name}, behind {show_offsets(offsets)}. Bound: {describeStream(stream).bound}."
    )


def _offsets(text: str) -> Any:
    """The offsets in a text of the form that Spark's Kafka source has: {"orders": {"0": 4711}}."""
    try:
        found = offsets_of(json.loads(text))
    except (ValueError, AttributeError, TypeError):
        raise InvalidOptionError(
            f'--cut {text} is not a cut. It has the form \'{{"orders": {{"0": 4711, "1": 4690}}}}\': for each '
            "partition the offset after the last message that the bound follows.",
            option="--cut",
        ) from None
    to_cut(found)
    return found

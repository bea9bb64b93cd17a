"""A stream with one column, its sink, and what lands in it."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from hypothesis import settings

import spark_rowtime as rt
from tests.streams import at, opened

TIME = at("10:00")
MANY = settings(max_examples=int(os.environ.get("ROWTIME_HOSTILE_EXAMPLES", "20")))
"""The examples of each property: ``ROWTIME_HOSTILE_EXAMPLES=2000 pytest tests/hostile`` looks longer."""


class Feed:
    """A stream ``rowtime, v`` in a folder of its own, with a producer that has just opened it."""

    def __init__(self, kind: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = str(self.folder / "s.rowtime")
        rt.createStream(self.path, f"rowtime TIMESTAMP NOT NULL, v {kind}")
        self.sink = opened(self.path, "feed")
        self.reader = rt.openReader(self.path, order="arrival")
        self.kind = self.reader.schema.field("v").type

    def landed(self) -> list[Any]:
        """The values that became visible since the last call."""
        self.sink.flush()
        return [row["v"] for train in self.reader for row in train.rows.to_pylist()]

    def outcome(self, send: Callable[[], Any]) -> list[Any] | rt.SchemaMismatchError:
        """What of the call landed; or the error it was refused with, after which the sink works as before."""
        try:
            send()
        except rt.SchemaMismatchError as error:
            assert self.landed() == []
            self.sink.sendRow((TIME, None))
            assert self.landed() == [None]
            return error
        return self.landed()

    def arrow(self, array: pa.Array) -> pa.Table:
        """A table of these values."""
        times = pa.array([TIME] * len(array)).cast(pa.timestamp("us", "UTC"))
        return pa.table({"rowtime": times, "v": array})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sink.close()
        self.reader.close()
        shutil.rmtree(self.folder)

"""Behind a long log a call does the work that it does behind a short one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.spark.options import READ, Options
from spark_rowtime.spark.source import RowtimeStreamReader
from spark_rowtime.store.local import LocalStore, create_local, open_local
from spark_rowtime.store.local.sweep import NamedSegments
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import SCHEMA, Writer
from tests.store.test_many_producers import steps

SHORT, LONG = 20, 2_000
MORE = 30
"""So many tens of instructions a bisection of the longer log may take more. To read it would take 1,400."""


class Asked:
    """A source as a query's thread asks it at the stream's end; its store counts."""

    def __init__(self, path: str, order: str) -> None:
        options = Options({"path": path, "order": order, "bounds": "ignore"}, READ)
        self.source = RowtimeStreamReader(options, len(SCHEMA))
        self.store: Any = self.source._store
        self.at = self.source.initialOffset()
        self.batch()

    def batch(self) -> None:
        """A poll, and the plan of its batch."""
        before, self.at = self.at, self.source.next(self.at, unlimited=True)
        self.source.reportLatestOffset()
        self.source.partitions(before, self.at)


def behind(path: str, trains: int) -> dict[str, int]:
    """What calls cost behind so many trains, of which the last ones wait for the bound."""
    create_local(path, SCHEMA, StreamSettings())
    store = open_local(path)
    writer, holder = Writer(store, "a"), Writer(store, "holder")
    for time in range(1, trains + 1):
        writer.send([time], floor=time)
    holder.send(floor=trains - 2)
    sources = {order: Asked(path, order) for order in ("arrival", "rowtime")}
    swept = NamedSegments(store._catalog)
    while swept.read():
        pass
    calls: dict[str, tuple[LocalStore, Callable[[], Any]]] = {
        "commit": (store, lambda: writer.send([trains + 1], floor=trains + 1)),
        "bound": (store, lambda: holder.send(floor=trains - 1)),
        "gc": (store, swept.read),
        "summary": (store, store.summary),
        "snapshot": (store, store.snapshot),
        "origin of the bound": (store, lambda: store.raised(trains - 1)),
        **{f"batch by {order}": (asked.store, asked.batch) for order, asked in sources.items()},
        **{f"poll by {order}": (asked.store, asked.batch) for order, asked in sources.items()},
    }
    taken = {name: steps(counted, call) for name, (counted, call) in calls.items()}
    for opened in (store, *(asked.store for asked in sources.values())):
        opened.close()
    return taken


@pytest.mark.long
def test_no_call_does_more_behind_a_long_log(tmp_path: Path) -> None:
    short, long = (behind(str(tmp_path / f"{trains}"), trains) for trains in (SHORT, LONG))
    assert {name: taken for name, taken in long.items() if taken > short[name] + MORE} == {}

"""What the tests of the sink share: what a stream holds, and a store that fails."""

from unit_support import clock_times, whole_log

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.memory import MemoryStore

LINGER = 100_000
"""A linger in microseconds that no test waits for: the clock is a ``HandClock``."""


def rejected(path):
    """The rejected rows of a stream: producer, reason, bound, time of day, ticker."""
    return [
        (r["producer"], r["reason"], r["bound"], r["rowtime"].strftime("%H:%M"), r["ticker"])
        for r in open_store(path).rejected().to_pylist()
    ]


def producer(path, name):
    """The description of one producer."""
    return next(p for p in rt.describeStream(path).producers if p.name == name)


def counts(path, name):
    """How many rows of a producer were accepted, and how many were rejected."""
    found = producer(path, name)
    return found.accepted, found.rejected


def tickers(path):
    """The tickers of all committed rows, by commit."""
    return [ticker for _, ticker in everything(path)]


def everything(path):
    """The times of day and tickers of all committed rows, by commit."""
    store = open_store(path)
    found = [store.read(piece) for piece in store.slices(*whole_log(store))]
    return [(t, r["ticker"]) for batch in found for t, r in zip(clock_times(batch), batch.to_pylist(), strict=True)]


class FailingStore(MemoryStore):
    """A store that cannot be written while ``down``. While ``mute`` it is written, but its answers are lost."""

    down = mute = False

    def commit(self, commit):
        if self.down:
            raise rt.StoreUnavailableError("the disk is full")
        receipt = super().commit(commit)
        if self.mute:
            raise rt.StoreUnavailableError("the connection was lost")
        return receipt

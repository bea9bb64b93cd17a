"""What a sink into a table gathers, when drains into it fail and go on: law *flushed* of GatheringSink."""

import random
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt
from tests.failing import Failing
from tests.tables.lake import FORMATS, Lake

ERRORS = (RuntimeError("can't start new thread"), MemoryError(), KeyboardInterrupt(), rt.StoreUnavailableError("away"))
STEPS = 14


class Run:
    """A stream that grows, and drains of it into one table, by sinks and readers that come and go."""

    def __init__(self, lake: Lake, kind: str, seed: int) -> None:
        self.lake, self.kind, self.random = lake, kind, random.Random(seed)
        rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL, n INT")
        self.feed = rt.openSink(lake.stream, producer="p", linger="1 hour")
        self.sent = 0
        self.sink: Any = None
        self.reader: Any = None

    def put(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            time = f"2026-01-05T{10 + self.sent // 4}:{15 * (self.sent % 4):02}:00Z"
            self.feed.sendRow({"rowtime": time, "n": self.sent})
            self.sent += 1
        self.feed.flush()

    def drain(self) -> None:
        if self.reader is None or self.random.random() < 0.5:
            self._leave()
            self.reader = rt.openReader(self.lake.stream)
            self.reader._how = type(self.reader._how)("rowtime", max_rows=1)
        if self.sink is None:
            every, most = self.random.choice(("1 hour", "0 s")), self.random.randint(1, 3)
            target = self.lake.target(self.kind)
            self.sink = rt.openTableSink(target, self.reader.schema, every=every, maxRows=most)
        with pytest.MonkeyPatch.context() as broken:
            error = self.random.choice(ERRORS) if self.random.random() < 0.7 else None
            if error is not None:
                self._break(broken, error)
            try:
                self.reader.drainTo(self.sink)
            except rt.SinkClosedError:
                self.close()
            except BaseException as seen:
                if seen is not error:
                    raise

    def _break(self, broken: pytest.MonkeyPatch, error: BaseException) -> None:
        of, name = self.random.choice(
            [(self.reader, "_next"), (self.sink._thread, "submit"), (self.sink, "_taken")]
            + [(self.sink, name) for name in ("sendRows", "sendRowtimeBound", "flush", "commit", "commitDue")]
        )
        fails = Failing(getattr(of, name), self.random.randint(1, 4), error, self.random.random() < 0.5)
        broken.setattr(of, name, fails)

    def close(self) -> None:
        """As a ``finally`` does it, whatever has happened."""
        if self.sink is not None:
            self.sink.close()
            self.sink = None

    def abandon(self) -> None:
        if self.sink is not None:
            self.sink.abandon()
            self.sink = None

    def _leave(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def end(self) -> None:
        """Ends the stream, and drains what is left."""
        self.close()
        self._leave()
        self.feed.close(complete=True)
        self.lake.drain(self.kind)


def check(lake: Lake, kind: str, seed: int) -> None:
    run = Run(lake, kind, seed)
    for _ in range(STEPS):
        run.random.choice((run.put, run.put, run.drain, run.drain, run.drain, run.close, run.abandon))()
    run.end()
    assert lake.numbers(kind) == list(range(run.sent)), seed
    assert rt.readTableBound(lake.target(kind)) == rt.RowtimeBound.END


@pytest.mark.each
@pytest.mark.parametrize("kind", FORMATS)
def test_each_row_is_there_once_whatever_fails(lake: Lake, kind: str) -> None:
    check(lake, kind, 0)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_each_row_is_there_once_in_many_runs(tmp_path_factory: pytest.TempPathFactory, kind: str) -> None:
    for seed in range(1, 25):
        check(Lake(tmp_path_factory.mktemp("run")), kind, seed)


@pytest.mark.each
@pytest.mark.parametrize("kind", FORMATS)
def test_a_bound_never_falls_and_no_row_is_below_it(lake: Lake, kind: str) -> None:
    rows, position = _rows(lake)
    with rt.openTableSink(lake.target(kind), rows.schema, every="0 s") as sink:
        sink.sendRowtimeBound("2026-01-05T12:00:00Z")
        sink.sendRowtimeBound("2026-01-05T11:00:00Z")
        with pytest.raises(rt.DisorderedOutputError, match="rowtime at 2026-01-05T11:30:00Z is below the bound of"):
            sink.sendRows(rows)
        sink.flush(position)
    with rt.openTableSink(lake.target(kind), rows.schema, every="0 s") as sink:
        with pytest.raises(rt.DisorderedOutputError):
            sink.sendRows(rows)
        sink.sendRowtimeBound("2026-01-05T11:00:00Z")
        sink.flush(position)
    assert rt.readTableBound(lake.target(kind)) == rt.RowtimeBound("2026-01-05T12:00:00Z")


def _rows(lake: Lake) -> tuple[pa.RecordBatch, str]:
    """A row, and the position behind it."""
    rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(lake.stream, producer="p") as feed:
        feed.sendRow(("2026-01-05T11:30:00Z", 1))
        feed.sendRowtimeBound("2026-01-05T12:00:00Z")
    with rt.openReader(lake.stream) as reader:
        train = reader.read()
        assert train is not None
        return train.rows, reader.position


def test_a_sink_whose_last_commit_fails_is_closed_all_the_same(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    rt.createStream(lake.stream, "rowtime TIMESTAMP NOT NULL")
    with rt.openReader(lake.stream) as reader:
        sink = rt.openTableSink(lake.target("delta"), reader.schema, every="1 hour")
    sink.sendRowtimeBound("2026-01-05T10:00:00Z")
    sink.flush()
    monkeypatch.setattr(sink, "_write", Failing(sink._write, 1, rt.StoreUnavailableError("away")))
    with pytest.raises(rt.StoreUnavailableError, match="away"):
        sink.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        sink._thread.submit(print)
    sink.close()

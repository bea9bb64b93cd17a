"""AdapterSuite: tests that an adapter class must pass."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from spark_rowtime.adapter.sinks import openSinks
from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.reader.reader import openReader
from spark_rowtime.stream import createStream
from spark_rowtime.stream_description import describeStream
from spark_rowtime.testing.difference import difference
from spark_rowtime.testing.dying_sink import DyingSink, DyingSinks
from spark_rowtime.testing.killed_process import kill_points, run_until_killed

_PRODUCER = "adapter"


class AdapterSuite:
    """Tests of an adapter: its rows are in order, it promises a bound, and it loses and repeats nothing when it dies.

    Inherit from this class in a class whose name begins with ``Test``; pytest runs the tests. The feed must come to
    its end, and must be the same each time: let ``makeAdapter`` give the adapter a recorded one. The suite starts the
    adapter in processes of their own and kills them (SIGKILL) at calls of the sink, so the test's module must be one
    that a new process can import.

    Attributes:
        adapter: The adapter class, with ``run`` or ``runProducers``; ``makeAdapter`` calls it without arguments.
        kills: The number of calls at which the adapter is killed, evenly spread over its run.
        mayReject: True for a feed that has late rows.

    Example:
        >>> from spark_rowtime.testing import AdapterSuite
        >>> class Meter:
        ...     schema = "rowtime TIMESTAMP NOT NULL, kwh DOUBLE"
        ...     def run(self, sink):
        ...         sink.flush(checkpoint=sink.checkpoint or "0")
        ...         for hour in range(int(sink.checkpoint), 3):
        ...             sink.sendRow((f"2026-01-05T1{hour}:00:00Z", 0.5))
        ...             sink.flush(checkpoint=str(hour + 1))
        >>> class TestMeter(AdapterSuite):
        ...     adapter = Meter
    """

    adapter: ClassVar[Any]
    kills: ClassVar[int] = 5
    mayReject: ClassVar[bool] = False

    def makeAdapter(self) -> Any:
        """Returns a new adapter for one run. Override it for an adapter that needs arguments."""
        return self.adapter()

    def test_rows_are_accepted(self, tmp_path: Path) -> None:
        """The run ends, and the stream has taken every row; with ``mayReject``, at least one."""
        self.runOnce(tmp_path)
        info = describeStream(_stream(tmp_path))
        assert info.rows > 0, "the adapter has sent no rows"
        late = f"{info.rejected} of its rows were late; declare their order in sinkOptions, or set mayReject = True"
        assert self.mayReject or not info.rejected, late

    def test_a_bound_is_promised(self, tmp_path: Path) -> None:
        """At the end of the run there is a bound, so that windows over the rows can close while the feed goes on."""
        bound = self.runOnce(tmp_path).bound
        assert bound is not None, "the adapter has promised no bound, so no window ever closes: see sendRowtimeBound"

    def test_nothing_is_lost_or_repeated_when_it_is_killed(self, tmp_path: Path) -> None:
        """After a kill at any call, the next run completes the same stream: rows, bound and rejections."""
        whole, calls = tmp_path / "whole", self.runOnce(tmp_path / "whole").calls
        for at, before in kill_points(calls, self.kills):
            folder = tmp_path / f"killed-at-{at}"
            run_until_killed(type(self), "runOnce", folder, at, before=before)
            self.runOnce(folder)
            _require_same(_outcome(whole), _outcome(folder), f"killed {'before' if before else 'after'} call {at}")

    def runOnce(self, folder: Path, dies_at: int | None = None, before: bool = True) -> "Run":
        """Runs the adapter once, as a host does, into a stream in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        feed = self.makeAdapter()
        createStream(_stream(folder), feed.schema, maxAhead=None, existOk=True)
        options = getattr(feed, "sinkOptions", {})
        if hasattr(feed, "runProducers"):
            with openSinks(_stream(folder), **options) as sinks:
                several = DyingSinks(sinks, dies_at, before=before)
                feed.runProducers(several)
                return Run(several.calls, _weakest(several.opened, folder))
        with openSink(_stream(folder), producer=_PRODUCER, **options) as sink:
            counted = DyingSink(sink, dies_at, before=before)
            feed.run(counted)
            return Run(counted.calls, sink.getRowtimeBound())


class Run(NamedTuple):
    """A run of an adapter: the number of its calls of the sink, and what it has promised."""

    calls: int
    bound: RowtimeBound | None


def _weakest(sinks: Sequence[StreamSink], folder: Path) -> RowtimeBound | None:
    """The bound that the producers that are still open have promised together; the stream's if all have left."""
    bounds = [sink.getRowtimeBound() for sink in sinks if not sink.closed]
    promised = [bound for bound in bounds if bound is not None]
    if not bounds:
        return describeStream(_stream(folder)).bound
    return min(promised) if len(promised) == len(bounds) else None


class _Outcome(NamedTuple):
    rows: list[tuple[Any, ...]]
    bound: RowtimeBound | None
    rejected: int


def _outcome(folder: Path) -> _Outcome:
    with openReader(_stream(folder), order="arrival") as reader:
        rows = [tuple(row.values()) for train in reader for row in train.rows.to_pylist()]
    info = describeStream(_stream(folder))
    if len(info.producers) > 1:  # how their commits interleave is no matter
        rows = sorted(rows, key=repr)
    return _Outcome(rows, info.bound, info.rejected)


def _require_same(whole: _Outcome, killed: _Outcome, what: str) -> None:
    lines = difference(whole.rows, killed.rows)
    assert not lines, "\n".join(
        [f"{what}: other rows than without the kill (- lost, + repeated or changed).", *lines, _HINT]
    )
    assert whole == killed, f"{what}: the stream ends differently: {killed[1:]}, without the kill {whole[1:]}."


_HINT = (
    "An adapter that resumes flushes a checkpoint before its first row, and with each flush one that names exactly "
    "the rows sent before; run begins after the checkpoint that it finds in sink.checkpoint."
)


def _stream(folder: Path) -> str:
    return str(folder / "adapter.rowtime")

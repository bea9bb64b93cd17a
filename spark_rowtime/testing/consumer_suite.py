"""ConsumerSuite: tests that a consumer class must pass."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.producer.rowsink import openSink
from spark_rowtime.reader.reader import openReader
from spark_rowtime.stream import createStream
from spark_rowtime.testing.dying_sink import DyingSink
from spark_rowtime.testing.killed_process import kill_points, run_to_end, run_until_killed


class ConsumerSuite:
    """Tests of a consumer: nothing changes its results, neither pieces, nor its death and a new start.

    A consumer is an object that a reader is drained into. Inherit from this class in a class whose name begins with
    ``Test``; pytest runs the tests. The suite starts the consumer in processes of their own and kills them (SIGKILL)
    at its calls, so the test's module must be one that a new process can import. A consumer without ``flush`` and
    ``checkpoint`` gets every row again after a kill, and passes if that does not change its results.

    Attributes:
        schema: The schema of the stream that is drained, as for ``createStream``.
        steps: What the stream holds: each step is a list of rows, as for ``sendRow``, or a bound, as a RowtimeBound.
            Each step is one commit. Rows may come in any order, but not below a bound before them.
        kills: The number of calls at which the consumer is killed, evenly spread over its run.

    Example:
        >>> import json, spark_rowtime as rt
        >>> from spark_rowtime.testing import ConsumerSuite
        >>> class Counter:
        ...     def __init__(self, file):
        ...         saved = json.loads(file.read_text()) if file.exists() else [0, None]
        ...         self.file, (self.rows, self.checkpoint) = file, saved
        ...     def sendRows(self, rows):
        ...         self.rows += rows.num_rows
        ...     def sendRowtimeBound(self, t, strict=False):
        ...         pass
        ...     def flush(self, checkpoint=None):
        ...         self.file.write_text(json.dumps([self.rows, checkpoint]))
        >>> class TestCounter(ConsumerSuite):
        ...     schema = "rowtime TIMESTAMP NOT NULL, units INT"
        ...     steps = [[("2026-01-05T14:30:00Z", 3)], rt.RowtimeBound("2026-01-05T15:00:00Z")]
        ...     def makeConsumer(self, folder):
        ...         return Counter(folder / "count.json")
        ...     def results(self, folder):
        ...         return Counter(folder / "count.json").rows
    """

    schema: ClassVar[Any]
    steps: ClassVar[Sequence[Sequence[Any] | RowtimeBound]]
    kills: ClassVar[int] = 5

    def makeConsumer(self, folder: Path) -> Any:
        """Returns the consumer as a new process makes it; it keeps its results in ``folder``."""
        raise NotImplementedError("Override makeConsumer: it returns a new consumer that keeps its results in folder.")

    def results(self, folder: Path) -> Any:
        """Returns what the consumers of ``folder`` have kept, as a value that can be compared."""
        raise NotImplementedError("Override results: it returns what the consumers of a folder have kept.")

    def test_pieces_give_the_same_results_as_the_whole(self, tmp_path: Path) -> None:
        """A drain after each commit gives the same results as one drain of everything."""
        whole, pieces = _new_folder(tmp_path / "whole"), _new_folder(tmp_path / "pieces")
        self._send(whole)
        self.drainOnce(whole)
        self._send(pieces, drained=True)
        assert self.results(pieces) == self.results(whole)

    def test_nothing_is_lost_or_repeated_when_it_is_killed(self, tmp_path: Path) -> None:
        """After a kill at any call, a new consumer completes the same results."""
        whole = _new_folder(tmp_path / "whole")
        self._send(whole)
        calls = self.drainOnce(whole)
        for at, before in kill_points(calls, self.kills):
            folder = _new_folder(tmp_path / f"killed-at-{at}")
            self._send(folder)
            run_until_killed(type(self), "drainOnce", folder, at, before=before)
            self.drainOnce(folder)
            found, expected = self.results(folder), self.results(whole)
            moment = f"killed {'before' if before else 'after'} call {at}"
            assert found == expected, f"{moment}: the results are {found}, without the kill {expected}. {_HINT}"

    def test_it_ends_with_a_complete_stream(self, tmp_path: Path) -> None:
        """Once no row follows, a drain returns: the bound is then ``RowtimeBound.END``."""
        folder = _new_folder(tmp_path / "complete")
        self._send(folder, complete=True)
        run_to_end(type(self), "drainOnce", folder)

    def drainOnce(self, folder: Path, dies_at: int | None = None, before: bool = True) -> int:
        """Drains the stream of the folder into a new consumer; returns the number of its calls."""
        consumer = DyingSink(self.makeConsumer(folder), dies_at, before=before)
        with openReader(_stream(folder)) as reader:
            reader.drainTo(consumer)
        return consumer.calls

    def _send(self, folder: Path, *, drained: bool = False, complete: bool = False) -> None:
        createStream(_stream(folder), self.schema, maxAhead=None)
        with openSink(_stream(folder), producer="test", rowsImplyBounds=False) as sink:
            for step in self.steps:
                if isinstance(step, RowtimeBound):
                    sink.sendRowtimeBound(step)
                else:
                    sink.sendRows(step)
                sink.flush()
                if drained:
                    self.drainOnce(folder)
            sink.close(complete=complete)


_HINT = (
    "Keep the results and the checkpoint that flush is given in one step, such as one file that is replaced or one "
    "transaction, and offer that checkpoint as the attribute checkpoint."
)


def _new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _stream(folder: Path) -> str:
    return str(folder / "consumer.rowtime")

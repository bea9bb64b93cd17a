"""A desk: sinks and an open store in one process, which execute commands in the same way over every store."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spark_rowtime.bounds.disorder import declared
from spark_rowtime.errors import RowtimeError
from spark_rowtime.producer import scheduler, unclosed
from spark_rowtime.producer.sink import StreamSink
from spark_rowtime.reader.release import Release
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.position import Position
from tests.store.streams import SCHEMA, batch


class Still:
    """A timer without a thread. It beats only when the test calls ``beat``."""

    def __init__(self, _lock: object, beat: Callable[[], object], _name: str) -> None:
        self.beat = beat

    def wake(self) -> None:
        """Does nothing: the test decides when it beats."""

    stop = wake


class Desk:
    """Executes ``do("flush", ...)`` and so on. Results and errors are returned as values that can be compared."""

    def __init__(self, open_store: Callable[[], Store], time: int) -> None:
        self._open_store, self.time = open_store, time
        self._store = self._opened()
        self.sinks: dict[str, StreamSink] = {}
        self.child: Any = None
        """The desk in the process that was forked from this one."""

    def do(self, what: str, *arguments: Any) -> Any:
        try:
            return getattr(self, what)(*arguments)
        except RowtimeError as error:
            return type(error).__name__, str(error).replace(self._store.path, "PATH")

    def _opened(self) -> Store:
        store = self._open_store()
        store.now = lambda: self.time
        return store

    def pass_time(self, micros: int) -> None:
        self.time += micros
        if self.child is not None:
            self.child.do("pass_time", micros)

    def fork(self) -> None:
        self.child = Desk(self._open_store, self.time)

    def in_child(self, what: str, *arguments: Any) -> Any:
        return self.child.do(what, *arguments)

    def open(self, name: str, order: dict[str, Any], how: dict[str, Any]) -> Any:
        self.sinks.pop(name, None)
        sink = StreamSink(self._opened(), name, declared(SCHEMA, **order), now=lambda: self.time, **how)
        self.sinks[name] = sink
        return sink.checkpoint, sink.getRowtimeBound()

    def send(self, name: str, seconds: list[float]) -> None:
        self.sinks[name].sendRows(batch(*seconds))

    def send_one(self, name: str, second: float) -> None:
        self.sinks[name].sendRow(batch(second).to_pylist()[0])

    def bound(self, name: str, second: float, strict: bool) -> Any:
        sink = self.sinks[name]
        sink.sendRowtimeBound(batch(second).column("rowtime")[0], strict=strict)
        return sink.getRowtimeBound()

    def flush(self, name: str, checkpoint: str | None) -> Any:
        self.sinks[name].flush(checkpoint)
        return self.sinks[name].checkpoint

    def beat(self, name: str) -> None:
        self.sinks[name]._scheduler.timer.beat()

    def close(self, name: str) -> None:
        self.sinks[name].close()

    def complete(self, name: str) -> None:
        self.sinks[name].close(complete=True)

    def abandon(self, name: str) -> None:
        self.sinks[name].abandon()

    def detach(self, name: str) -> None:
        self._store.detach(name)

    def close_producer(self, name: str, complete: bool) -> None:
        self._store.close_producer(name, complete=complete)

    def expire(self) -> bool:
        return self._store.expire()

    def keep(self, reader: str, position: Position) -> None:
        self._store.keep(reader, position)

    def forget(self, reader: str) -> None:
        self._store.forget(reader)

    def gc(self, age: int, force: bool) -> Any:
        done = self._store.gc(age=age, force=force)
        return done.rows, done.kept_for

    def read(self, after: Position, upto: Position) -> list[Any]:
        """The rows between two positions."""
        pieces = self._store.slices(after, upto)
        return [(p.seq, rows_between(self._store.read(p), p.seq, after, upto).to_pylist()) for p in pieces]

    def step(self, how: Release, position: Position | None) -> Any:
        """A reader's next step: its position afterwards, and the rows that it read."""
        position = how.earliest(self._store) if position is None else position
        to = how.step(self._store, position)
        pieces = how.slices(self._store, position, to)
        return to._replace(made=None), [how.rows(self._store, piece, position, to).to_pylist() for piece in pieces]


class ForkedDesk:
    """A desk in a process that is forked from this one, which has streams open. It dies with it, or by ``kill``."""

    def __init__(self, path: str, time: int) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._pid = os.fork()
        if not self._pid:
            self._pipe.close()
            with suppress(EOFError):
                serve(theirs, path, time)
            os._exit(0)
        theirs.close()

    def do(self, *command: Any) -> Any:
        self._pipe.send(command)
        return self._pipe.recv()

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._pipe.close()


class ForkingDesk(Desk):
    """A desk whose child is a real process. A new one takes the place of the last, which gets kill -9."""

    def fork(self) -> None:
        if self.child is not None:
            self.child.kill()
        self.child = ForkedDesk(self._store.path, self.time)


def serve(pipe: Any, path: str, time: int) -> None:
    """Runs a desk at a stream, which executes the commands from the pipe."""
    unclosed.PATIENCE_SECONDS = 600  # a pause of the machine must not change the order of what is done
    scheduler.Timer = Still
    desk = ForkingDesk(lambda: open_store(path), time)
    while True:
        pipe.send(desk.do(*pipe.recv()))

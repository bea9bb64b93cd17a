"""A schedule's streams and producers, with all bounds or with some left out."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from spark_rowtime.bounds.clock import Idled, Status
from spark_rowtime.store import open_store
from tests.law7.schedule import Close, Follow, Idle, LetGo, Open, Row, Schedule, Send, Stray
from tests.law7.topics import KEPT, Topic
from tests.store.streams import infos
from tests.streams import at, opened

ROWS = "rowtime TIMESTAMP NOT NULL, id INT, k INT, v INT"


@dataclass(frozen=True)
class LeftOut:
    """The bounds that are left out: sent ones, by the number of their event; those that rows imply; maxLag."""

    promises: frozenset[int] = frozenset()
    implied: bool = False
    lag: bool = False


broker: Any = None
"""The broker of the topics; needed for schedules that have some."""
database = ""
"""The URL of the database that has all streams; empty: they are in folders."""


class Feed:
    """Law: a row that is accepted with all bounds is accepted with fewer."""

    def __init__(self, folder: Path, schedule: Schedule, left_out: LeftOut, only: set[int] | None = None) -> None:
        """``only``: the ids of the rows to send; None: all rows, also late ones. With it, watches declare less."""
        self.folder, self.left_out, self.only = folder, left_out, only
        self.paths = {stream: f"{database}{folder}/{stream}.rowtime" for stream, _ in schedule.settings}
        self.sinks: dict[tuple[str, str], Any] = {}
        self._idle_keys: dict[tuple[str, str], bool] = {}
        self.settings = {stream: dict(settings) for stream, settings in schedule.settings}
        self.seqs: dict[str, list[int]] = {stream: [] for stream in self.paths}
        """The length of each stream's log after each event."""
        weaker = only is not None
        self.topics = {
            stream: Topic(broker, self.paths[stream], topic_bounds, weaker=weaker)
            for stream, topic_bounds in schedule.topic_bounds
        }
        self.watches = {stream: topic.watch for stream, topic in self.topics.items() if topic.watch is not None}
        self.removed: set[int] = set()
        """The ids of the accepted rows that are not there any more."""
        self.ends: dict[str, list[dict[int, int]]] = {stream: [] for stream in self.topics}
        """The ends of each topic after each event."""
        for stream, settings in schedule.settings:
            kept = {name: value for name, value in settings if not (left_out.lag and name == "maxLag")}
            rt.createStream(self.paths[stream], KEPT if stream in self.topics else ROWS, **kept)

    def apply(self, number: int, event: Any) -> None:
        """Applies an event to the streams. An event for the query changes nothing."""
        match event:
            case Open():
                self._open(event)
            case Send():
                self._send(number, event)
            case Close():
                self.sinks.pop((event.stream, event.producer)).close(complete=event.complete)
            case LetGo():
                (rt.closeProducer if event.close else rt.detachProducer)(self.paths[event.stream], event.producer)
            case Idle():
                self._idle(event)
            case Stray():
                self.topics[event.stream].stray(event.row)
            case Follow():
                self.watches[event.stream].follow(event.clock)
        for stream, path in self.paths.items():
            self.seqs[stream].append(rt.describeStream(path).seq)
        for stream, topic in self.topics.items():
            self.ends[stream].append(dict(topic.ends))

    def _open(self, event: Open) -> None:
        order = {"rowsImplyBounds": False} if self.left_out.implied else dict(event.order)
        if event.stream in self.topics:
            sink = self.topics[event.stream].opened(event.producer, **order)
        else:
            sink = opened(self.paths[event.stream], event.producer, onLate="reject", lease=None, **order)
        self._fenced(self.sinks.pop((event.stream, event.producer), None))
        self.sinks[event.stream, event.producer] = sink
        self._idle_keys[event.stream, event.producer] = "keyIdle" in order

    @staticmethod
    def _fenced(sink: Any) -> None:
        if sink is not None:
            with suppress(rt.ProducerFencedError):
                sink.close()

    def _send(self, number: int, event: Send) -> None:
        """Sends rows and a bound. Where values become idle, none is left out: it may keep a value that counts."""
        sink = self.sinks[event.stream, event.producer]
        rows = [row for row in event.rows if self.only is None or row.id in self.only]
        sink.sendRows(rows if event.stream in self.topics else [self._sent(row) for row in rows])
        if event.promise and (number not in self.left_out.promises or self._idle_keys[event.stream, event.producer]):
            sink.sendRowtimeBound(at(event.promise.time), strict=event.promise.strict)
        sink.flush(checkpoint=str(number) if "idleTimeout" in self.settings[event.stream] else None)

    def _idle(self, event: Idle) -> None:
        """Makes a producer idle, as the process does that finds the timeout. The schedule decides, not the wall clock.

        A producer that sends nothing because its bound is left out is not idle, since it stores a checkpoint.
        """
        store: Any = open_store(self.paths[event.stream])
        attached = [p.name for p in infos(store) if p.status is Status.ATTACHED]
        if event.producer in attached:
            _log_idled(store, event.producer)
        store.close()

    def remove(self, stream: str) -> None:
        """Removes the rows that all registered readers have read."""
        before = self.accepted()
        store: Any = open_store(self.paths[stream])
        store.gc(age=0)
        store.close()
        self.removed |= before

    @staticmethod
    def _sent(row: Row) -> tuple[Any, ...]:
        return (at(row.rowtime), *row[1:])

    def accepted(self) -> set[int]:
        """The ids of all rows that the streams have accepted."""
        paths = [path for stream, path in self.paths.items() if stream not in self.topics]
        readers = [rt.openReader(path, order="arrival") for path in paths]
        rows = {row for reader in readers for train in reader for row in train.rows.column("id").to_pylist()}
        return rows.union(self.removed, *(topic.sent for topic in self.topics.values()))

    def settle(self) -> bool:
        """Waits until the watches that the query hosts have followed their topics; whether there are some."""
        hosted = [watch for watch in self.watches.values() if watch.hosted]
        for watch in hosted:
            watch.settle()
        return bool(hosted)

    def late(self) -> list[int]:
        """The ids of the rows of topics that a query has taken for late."""
        return [row for topic in self.topics.values() for row in topic.late()]

    def close(self) -> None:
        """Lets go of all sinks."""
        for sink in self.sinks.values():
            sink.abandon()


def _log_idled(store: Any, producer: str) -> None:
    """Logs that the producer is idle, without letting time pass."""
    store._decide(lambda ledger: ledger._tick(Idled(producer), ledger._page.find(producer)), producer)

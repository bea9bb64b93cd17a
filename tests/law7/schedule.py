"""Random schedules: what producers send, and when the query runs and stops. Values that print as they are written."""

import os
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.law7.calendars import Calendar
from tests.spark.observed_query import clock_of_micros, micros

NEAR_GRID = (0, 0, 0, 0, 1, -1, 999, -999, 1000, -1000)
"""Offsets from the calendar's grid in microseconds: rows and bounds are on the edges of windows, or close to them."""
KEYS = (0, 1, 2)
NULLABLE = (0, 0, 1, 2, None)
END_MICROS = 14 * 24 * 60 * 60 * 1_000_000
"""From a calendar's start to the bound that closes everything."""


class Row(NamedTuple):
    """A row. ``id`` is unique."""

    rowtime: str
    id: int
    k: int | None
    v: int


class Promise(NamedTuple):
    """A bound that is sent."""

    time: str
    strict: bool


@dataclass(frozen=True)
class Open:
    """A producer joins, or takes over the attached one of that name. ``order``: the options of openSink for it."""

    stream: str
    producer: str
    order: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Send:
    """One commit: rows in one call, then a bound, either of which may be missing."""

    stream: str
    producer: str
    rows: tuple[Row, ...]
    promise: Promise | None = None


@dataclass(frozen=True)
class Close:
    """A producer leaves. ``complete``: it will never send again."""

    stream: str
    producer: str
    complete: bool = False


@dataclass(frozen=True)
class LetGo:
    """The stream waits no longer for a producer that is expected and has not come. ``close``: it counts as left."""

    stream: str
    producer: str
    close: bool


@dataclass(frozen=True)
class Idle:
    """A producer has sent nothing for longer than ``idleTimeout``."""

    stream: str
    producer: str


@dataclass(frozen=True)
class Poll:
    """The query, which is started if it does not run, processes all available data."""


@dataclass(frozen=True)
class Stop:
    """The query stops. ``crashed``: before its last batch was written to the commit log."""

    crashed: bool


@dataclass(frozen=True)
class Gc:
    """All rows are removed that the query has read."""

    stream: str


@dataclass(frozen=True)
class Stray:
    """A row is sent into a topic past the bounds beside it; it may lie below them."""

    stream: str
    row: Row


@dataclass(frozen=True)
class Follow:
    """A watch follows what its topic has now, and ends. ``clock``: where its delay puts the bound of a quiet partition.

    None: without a delay.
    """

    stream: str
    clock: str | None


Event = Open | Send | Close | LetGo | Idle | Poll | Stop | Gc | Stray | Follow


@dataclass(frozen=True)
class Watched:
    """The bounds of a topic are those that a watch derives from it.

    ``reads``: from its messages, otherwise from the brokers' clock alone. ``lateness``: in minutes.
    ``hosted``: the query hosts the watch, which follows while the query runs.
    """

    reads: bool
    lateness: int
    hosted: bool


@dataclass(frozen=True)
class TopicBounds:
    """The rows of a stream are in a topic, and the stream has their bounds.

    ``spread``: the partitions of the rows, by turns. ``own_cuts``: a program sends the cuts itself, with the ends of
    the whole topic, otherwise rt.KafkaBounds does. ``strays``: whether rows are sent past the bounds. ``watched``: a
    watch sends the bounds, and producers send rows alone.
    """

    spread: tuple[int, ...]
    own_cuts: bool
    strays: bool
    watched: Watched | None = None


@dataclass(frozen=True)
class Schedule:
    """``settings``: those of createStream, by stream. Before the last event a bound, or the end, closes everything.

    ``topic_bounds``: the streams that have the bounds of a topic.
    """

    settings: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
    events: tuple[Event, ...]
    topic_bounds: tuple[tuple[str, TopicBounds], ...] = ()

    @property
    def promises(self) -> list[int]:
        """The events whose bound may be left out."""
        return [n for n, e in enumerate(self.events) if isinstance(e, Send) and e.promise and e.producer != LAST]


AWAITED = "awaited"
"""The producer that a stream may expect from its creation on."""
LAST = "end"
"""The producer that closes everything."""
LATENESS, MAX_LAG = 3, 4
"""Steps of the grid."""
Options = tuple[tuple[str, Any], ...]
"""Names and values."""


def orders(calendar: Calendar) -> list[Options]:
    """The options of openSink for the order of a producer's rows."""
    return [
        (),
        (("rowsImplyBounds", False),),
        (("rowsImplyBounds", False),),
        (("lateness", calendar.minutes(LATENESS)),),
        (("kSort", 2),),
        (("rowsImplyBounds", False), ("maxTrainRows", 2)),
        (("inOrderPer", "k"),),
        (("inOrderPer", "k"), ("keyIdle", calendar.minutes(LATENESS))),
    ]


def stream_settings(calendar: Calendar) -> list[Options]:
    """Settings of a stream for createStream. The schedule decides when ``idleTimeout`` has passed."""
    lag = (("maxLag", calendar.minutes(MAX_LAG)),)
    awaited = (("producers", (AWAITED,)),)
    return [(), (), (("boundsBeforeRows", False),), lag, (("idleTimeout", "1 day"),), awaited]


TOPIC_ORDERS: list[Options] = [(("rowsImplyBounds", False),)]
"""The same where the rows are in a topic: they imply no bounds."""
TOPIC_SETTINGS: list[Options] = [(), (), (("producers", ("awaited",)),)]
"""Settings of a stream with the bounds of a topic."""
OFF_GRID = 150_000_000
"""By so many microseconds a bound by a clock lies beside the grid: it goes on with the clock, and nothing else does."""
ACTIONS = ("send",) * 10 + ("poll",) * 3 + ("open", "take over", "close", "stop", "idle", "gc")
STEPS = (4, 7) if os.environ.get("ROWTIME_LAW7_SHORT") else (8, 14)
"""The least and the most actions of a schedule, without those for each of its streams."""
PARTITIONS = 3
"""The partitions of a topic."""
BEHIND_IDS = 1000
"""From the id of a row to that of the one behind it; more rows than this no schedule has."""
MOST = 2
"""The most producers of a stream at a time. A silent one holds the clock."""


@dataclass
class Writer:
    """A producer while its schedule is created. ``least``: about the earliest time of its next rows."""

    name: str
    order: dict[str, Any]
    least: int
    lateness: int
    times: list[int] = field(default_factory=list)
    keys: dict[int | None, int] = field(default_factory=dict)

    def moved(self, times: list[int], keys: list[int | None]) -> None:
        """Moves ``least`` by the producer's own rows and their keys, according to its declared order."""
        self.times = sorted([*self.times, *times])
        if "inOrderPer" in self.order:
            self.moved_per_key(times, keys)
            return
        if self.order.get("rowsImplyBounds") is False or not times:
            return
        behind = self.lateness if "lateness" in self.order else 0
        kept = self.order.get("kSort", 0)
        if len(self.times) > kept:
            self.least = max(self.least, self.times[-1 - kept] - behind)

    def moved_per_key(self, times: list[int], keys: list[int | None]) -> None:
        """The same where the rows are in order per key: the slowest key counts, unless it is idle."""
        for time, key in zip(times, keys, strict=True):
            self.keys[key] = max(time, self.keys.get(key, 0))
        idle = self.lateness if "keyIdle" in self.order else END_MICROS
        counting = [time for time in self.keys.values() if time >= max(self.keys.values()) - idle]
        self.least = max(self.least, min(counting, default=0))


class Making:
    """A schedule that is being drawn."""

    def __init__(
        self,
        draw: Any,
        settings: dict[str, dict[str, Any]],
        calendar: Calendar,
        keys: Any,
        topic_bounds: dict[str, TopicBounds],
    ) -> None:
        self.draw, self.settings, self.streams, self.topic_bounds = draw, settings, list(settings), topic_bounds
        self.actions = ACTIONS + ("stray",) * any(one.strays for one in topic_bounds.values())
        self.actions += ("follow",) * 4 * any(one.watched for one in topic_bounds.values())
        self.calendar, self.grid, self.keys = calendar, calendar.step, keys
        self.events: list[Event] = []
        self.writers: dict[str, list[Writer]] = {stream: [] for stream in settings}
        self.front = dict.fromkeys(settings, micros(calendar.start))
        self.rows = self.names = 0
        self.awaited = {stream for stream, given in settings.items() if "producers" in given}

    def one(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def time(self, least: int, most: int) -> int:
        """A time up to ``most`` steps of the grid above ``least``, or a little beside the grid."""
        on_grid = -(-least // self.grid) * self.grid
        return on_grid + self.grid * self.draw(st.integers(0, most)) + self.one(NEAR_GRID)

    def step(self) -> None:
        stream = self.one(self.streams)
        action = self.one(self.actions)
        attached = self.writers[stream]
        if action == "poll" and not isinstance(self.events[-1], Poll):
            self.events.append(Poll())
        elif action == "stop":
            self.events.append(Stop(self.draw(st.booleans())))
        elif action == "gc" and stream not in self.topic_bounds and any(isinstance(e, Poll) for e in self.events):
            self.events.append(Gc(stream))
        elif (action == "open" and len(attached) < MOST) or not attached:
            self.open(stream)
        elif action == "take over":
            self.take_over(stream, self.one(attached))
        elif action == "close":
            self.close(stream, self.one(attached))
        elif action == "idle" and "idleTimeout" in self.settings[stream]:
            self.events.append(Idle(stream, self.one(attached).name))
        elif action == "follow" and (watched := self.watched(stream)) and not watched.hosted:
            self.events.append(Follow(stream, self.clock(stream, watched)))
        elif action == "stray" and stream in self.topic_bounds and self.topic_bounds[stream].strays:
            self.events.append(Stray(stream, self.row(self.time(self.front[stream] - LATENESS * self.grid, LATENESS))))
        else:
            slowest = min(attached, key=lambda writer: writer.least)
            self.send(stream, self.one((slowest, *attached)))

    def watched(self, stream: str) -> Watched | None:
        return self.topic_bounds[stream].watched if stream in self.topic_bounds else None

    def clock(self, stream: str, watched: Watched) -> str | None:
        """Where the clock puts the bound: about where the rows are, or nowhere."""
        if watched.reads and self.draw(st.booleans()):
            return None
        on_grid = self.front[stream] // self.grid + self.draw(st.integers(-LATENESS, 0))
        return clock_of_micros(on_grid * self.grid + OFF_GRID)

    def open(self, stream: str) -> None:
        """A new producer, which starts at the time of the slowest one; or the awaited one comes."""
        self.names += 1
        comes = stream in self.awaited and bool(self.writers[stream])
        self.awaited -= {stream} if comes else set()
        least = min((w.least for w in self.writers[stream]), default=self.front[stream])
        order = self.order(stream)
        writer = Writer(AWAITED if comes else f"p{self.names}", dict(order), least, LATENESS * self.grid)
        self.writers[stream].append(writer)
        self.events.append(Open(stream, writer.name, order))

    def order(self, stream: str) -> Options:
        """The options of openSink for a producer. Rows of a watched topic are about as late as is declared."""
        if self.watched(stream):
            return (("lateness", self.calendar.minutes(LATENESS)),)
        return self.one(TOPIC_ORDERS if stream in self.topic_bounds else orders(self.calendar))  # type: ignore[no-any-return]

    def take_over(self, stream: str, writer: Writer) -> None:
        self.events.append(Open(stream, writer.name, tuple(writer.order.items())))

    def close(self, stream: str, writer: Writer) -> None:
        self.writers[stream].remove(writer)
        self.events.append(Close(stream, writer.name))

    def send(self, stream: str, writer: Writer) -> None:
        times = [self.time(writer.least, 5) for _ in range(self.draw(st.integers(0, 4)))]
        if writer.order.get("rowsImplyBounds", True) and not {"lateness", "inOrderPer"} & writer.order.keys():
            times.sort()
        rows = tuple(self.row(time) for time in times)
        writer.moved(times, [row.k for row in rows])
        said = not self.watched(stream) and (not rows or self.draw(st.booleans()))
        promise = self.promise(writer) if said else None
        self.events.append(Send(stream, writer.name, rows, promise))
        self.front[stream] = max(self.front[stream], writer.least, *times)

    def row(self, time: int) -> Row:
        self.rows += 1
        return Row(clock_of_micros(time), self.rows, self.one(self.keys), self.draw(st.integers(0, 3)))

    def promise(self, writer: Writer) -> Promise:
        """A bound that is never below the producer's last one."""
        time, strict = max(self.time(writer.least, 3), writer.least), self.draw(st.booleans())
        writer.least = time + strict
        return Promise(clock_of_micros(time), strict)

    def end(self) -> None:
        """All producers leave, and a last bound, or a producer that is complete, closes all windows.

        Of a watched topic a delay does, which lies below the age of the rows.
        """
        self.events += [LetGo(stream, AWAITED, self.draw(st.booleans())) for stream in sorted(self.awaited)]
        for stream, writers in self.writers.items():
            self.events += [Close(stream, writer.name) for writer in writers]
        self.events += [Open(stream, LAST, ()) for stream in self.streams if not self.watched(stream)]
        end = Promise(clock_of_micros(micros(self.calendar.start) + END_MICROS), False)
        for stream in self.streams:
            if self.watched(stream):
                self.events.append(Follow(stream, end.time))
            elif self.draw(st.booleans()):
                self.events.append(Send(stream, LAST, self.last(stream), end))
            else:
                self.events.append(Close(stream, LAST, complete=True))
        self.events.append(Poll())

    def last(self, stream: str) -> tuple[Row, ...]:
        """A row after all others if bounds only count once there are rows, so that the last bound closes all."""
        if self.settings[stream].get("boundsBeforeRows", True):
            return ()
        return (self.row(-(-self.front[stream] // self.grid) * self.grid + self.grid),)


def and_behind(event: Event, by: int) -> Event:
    """The same event. If it sends rows, then one more, of the same key and so many microseconds before its last one."""
    if not isinstance(event, Send) or not event.rows:
        return event
    last = event.rows[-1]
    more = Row(clock_of_micros(micros(last.rowtime) - by), last.id + BEHIND_IDS, last.k, last.v + 1)
    return replace(event, rows=(*event.rows, more))


@st.composite
def schedules(draw: Any, streams: list[str], calendar: Calendar, topic_bounds: dict[str, TopicBounds]) -> Schedule:
    """Schedules for these streams, those of ``topic_bounds`` with a topic. Each has a producer from the start."""
    usual = stream_settings(calendar)
    of_topics = {name: [()] if one.watched else TOPIC_SETTINGS for name, one in topic_bounds.items()}
    choices = [(stream, of_topics.get(stream, usual)) for stream in streams]
    settings = tuple((stream, draw(st.sampled_from(given))) for stream, given in choices)
    keys = draw(st.sampled_from((KEYS, NULLABLE)))
    making = Making(draw, {stream: dict(given) for stream, given in settings}, calendar, keys, topic_bounds)
    for stream in streams:
        making.open(stream)
    for _ in range(draw(st.integers(*STEPS)) + 4 * len(streams)):
        making.step()
    making.end()
    return Schedule(settings, tuple(making.events), tuple(topic_bounds.items()))

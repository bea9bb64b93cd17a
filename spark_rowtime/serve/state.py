"""The state of a stream as the page shows it, for JSON.

What a commit changes is read at each refresh. What only time changes (when a producer was seen, what its lease has
left, the readers) costs more to read with many producers, and is read every few seconds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from spark_rowtime.admin.description import described, show_bound, show_settings, warnings
from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.clock import Status
from spark_rowtime.store.base import Store
from spark_rowtime.store.current_state import clock_now
from spark_rowtime.store.held_back import rows_held_back
from spark_rowtime.store.record import LastSeen, ProducerInfo
from spark_rowtime.stream import StreamInfo, messages_behind, read_info, waits_for
from spark_rowtime.types.schema import show_schema

Value = dict[str, Any]


def bound_value(bound: RowtimeBound | None) -> Value | None:
    """A bound for the page: its text, and its floor in milliseconds since the epoch; null at the end of time."""
    if bound is None:
        return None
    return {"text": show_bound(bound), "ms": None if bound.isEnd else bound.floor / 1000, "end": bound.isEnd}


class State(NamedTuple):
    """A stream at one moment: the facts about it, its producers by name, and who of them holds the clock back."""

    facts: Value
    producers: dict[str, ProducerInfo]
    holding: frozenset[str]


def read_state(store: Store, path: str) -> State:
    """Reads what commits change. The head first: what lands meanwhile has a later seq, so the next look reads it."""
    head, (clock, due), summary = store.head(), clock_now(store), store.summary()
    infos, holders = {info.name: _now(info, due) for info in store.producers()}, clock.holders()
    bound, first = as_bound(clock.floor), [name for name in holders if name in infos][:_NAMED]
    complete = bound is not None and bound.isEnd
    facts = {
        "bound": bound_value(bound),
        "complete": complete,
        "holders": first,
        "holderCount": len(holders),
        "waitsFor": waits_for(path, clock.holder(), list(infos.values()), complete=complete),
        "largest": bound_value(as_bound(head.largest)),
        "rows": head.rows,
        "rejected": summary.rejected,
        "rowsHeldBack": rows_held_back(store),
        "seq": head.seq,
    }
    return State(facts, infos, frozenset(holders))


def _now(info: ProducerInfo, due: Mapping[str, Status]) -> ProducerInfo:
    return replace(info, status=due[info.name]) if info.name in due else info


_NAMED = 3
"""The largest number of producers that hold the clock back which the facts name; each producer says whether it does."""


def producer_value(info: ProducerInfo, holds: bool) -> Value:
    """Returns the facts about a producer that commits change."""
    return {
        "name": info.name,
        "status": info.status.value,
        "bound": bound_value(as_bound(info.floor)),
        "accepted": info.accepted,
        "rejected": info.rejected,
        "epoch": info.epoch,
        "holds": holds,
        "lag": messages_behind(info.checkpoint),
    }


def read_times(store: Store) -> dict[str, Value]:
    """Returns when each producer was last seen and last sent, by name, in milliseconds since the epoch."""
    now = store.now()
    return {name: _times(last, now) for name, last in store.last_seen().items()}


def _times(last: LastSeen, now: int) -> Value:
    return {"sent": second(now - last.silent), "seen": second(now - last.unseen), "lease": _milliseconds(last.lease)}


def second(micros: int) -> int:
    """Returns a time in milliseconds, rounded to a second: the reading of a clock must not look like a change."""
    return round(micros / 1_000_000) * 1000


def _milliseconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1000


_NOT_SHOWN = ("checkpoint", "keys", "weakestKeys", "cut")
"""What a visitor does not learn of a producer: where its feed stands, and values of its rows."""


def read_shown(path: str) -> StreamInfo:
    """Does what ``describeStream`` does, and asks for no path of this machine that a reader has chosen."""
    return read_info(path, lambda _: False)


def shown(info: StreamInfo) -> Value:
    """The JSON of ``rowtime describe``, without what a visitor must not learn."""
    value = described(info)
    for producer in value["producers"]:
        for name in _NOT_SHOWN:
            del producer[name]
    for reader in value["readers"]:
        del reader["checkpointGone"]
    return value


def details_of(info: StreamInfo) -> Value:
    """Returns the facts about a stream that change rarely."""
    return {
        "columns": show_schema(info.schema),
        "settings": show_settings(info),
        "removed": info.removed,
        "forgotten": info.forgotten,
        "readers": [{"name": r.name, "seq": r.seq, "unread": r.unread, "seen": r.seen} for r in info.readers],
        "warnings": warnings(info),
    }

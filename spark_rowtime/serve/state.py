"""The state of a stream, and why it stands there, as the page shows them, for JSON.

What a commit changes is shown at each refresh. What only time changes (when a producer was seen, what its lease has
left, the readers) is shown every few seconds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spark_rowtime.admin.description import described, show_bound, show_settings, warnings
from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.diagnosis.explanation import ChainLink, Explanation
from spark_rowtime.store.backlog import of_snapshot, rows_held_back
from spark_rowtime.store.base import Store
from spark_rowtime.store.record import LastSeen, ProducerInfo
from spark_rowtime.store.snapshot import Snapshot
from spark_rowtime.stream_description import messages_behind, read_info
from spark_rowtime.stream_info import StreamInfo, waits_for
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.timestamps import SECOND_MICROS

Value = dict[str, Any]


def bound_value(bound: RowtimeBound | None) -> Value | None:
    """A bound for the page: its text, and its floor in milliseconds since the epoch; null at the end of time."""
    if bound is None:
        return None
    return {"text": show_bound(bound), "ms": None if bound.isEnd else bound.floor / 1000, "end": bound.isEnd}


class State(NamedTuple):
    """A stream at one moment: the facts about it, its producers by name, and who of them holds the clock back."""

    facts: Value
    producers: Mapping[str, ProducerInfo]
    holding: frozenset[str]


def read_state(store: Store, path: str) -> tuple[State, Snapshot]:
    """Reads what the page shows at each refresh. Returns it with the snapshot that it is of."""
    snapshot, held_back = of_snapshot(store, lambda at: rows_held_back(store, at.head))
    return state_of(snapshot, path, held_back), snapshot


def state_of(snapshot: Snapshot, path: str, held_back: int) -> State:
    """Returns what the page shows of a snapshot."""
    head, bound, holders = snapshot.head, as_bound(snapshot.clock.floor), snapshot.clock.holders()
    complete = bound is not None and bound.isEnd
    facts = {
        "bound": bound_value(bound),
        "complete": complete,
        "holders": holders[:_NAMED],
        "holderCount": len(holders),
        "waitsFor": waits_for(path, snapshot.clock.holder(), snapshot.producers.values(), complete=complete),
        "largest": bound_value(as_bound(head.largest)),
        "rows": head.rows,
        "rejected": snapshot.rejected,
        "rowsHeldBack": held_back,
        "seq": head.seq,
    }
    return State(facts, snapshot.producers, frozenset(holders))


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


def times_of(snapshot: Snapshot) -> dict[str, Value]:
    """Returns when each producer was last seen and last sent, by name, in milliseconds since the epoch."""
    return {name: _times(last, snapshot.wall) for name, last in snapshot.seen.items()}


def _times(last: LastSeen, now: int) -> Value:
    return {"sent": second(now - last.silent), "seen": second(now - last.unseen), "lease": _milliseconds(last.lease)}


def second(micros: int) -> int:
    """Returns a time in milliseconds, rounded to a second: the reading of a clock must not look like a change."""
    return round(micros / SECOND_MICROS) * 1000


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


def reasons_of(found: Explanation) -> Value:
    """Returns the answer of ``why`` for the page."""
    return {
        "at": None if found.at is None else bound_value(RowtimeBound(found.at)),
        "complete": found.complete,
        "cause": found.cause.value,
        "note": found.note,
        "remedy": found.remedy,
        "chain": [_link(link) for link in found.chain],
    }


def _link(link: ChainLink) -> Value:
    moved = link.lastMoved
    return {
        "kind": link.kind,
        "name": link.name,
        "bound": bound_value(link.bound),
        "behindSeconds": link.behindSeconds,
        "moved": None if moved is None else second(round(moved.timestamp() * SECOND_MICROS)),
        "note": link.note,
    }

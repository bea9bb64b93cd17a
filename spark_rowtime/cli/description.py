"""What ``rowtime describe`` shows of a stream, as text."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from spark_rowtime.admin.description import show_bound, show_settings, warnings
from spark_rowtime.bounds.clock import Status
from spark_rowtime.cli.cuts import show_offsets
from spark_rowtime.cli.output import duration, fact, styled, table
from spark_rowtime.cli.producers import releasing
from spark_rowtime.stream import ProducerDescription, StreamInfo
from spark_rowtime.types.schema import show_schema
from spark_rowtime.types.short_repr import short_repr

SILENT = timedelta(minutes=1)
"""Of a producer that holds the bound back and has not sent for this long, the text says so."""
_NAMED = 3
"""The largest number of producers that one sentence names."""
_MEANING = {False: ": no later row is before that", True: ": no row follows"}
_STATUS = {Status.EXPECTED: "expected, has not opened"}
_PRODUCER = ("producer", "status", "bound", "rows", "rejected", "seen ago", "lease")
_READER = ("reader", "seq", "unread", "seen ago")


def lines_of(info: StreamInfo, width: int, now: datetime) -> list[str]:
    """The text of ``rowtime describe``, in lines of at most ``width`` characters where names and paths allow it.

    A warning is one line, because it has a command that is to be copied.
    """
    warned = [styled(f"warning   {text}", fg="yellow") for text in warnings(info)]
    return [*_facts(info, width), "", *_producers(info, width, now), *_readers(info, width, now), *warned]


def _facts(info: StreamInfo, width: int) -> list[str]:
    settings = ", ".join(f"{name}={value}" for name, value in show_settings(info).items())
    facts = [
        ("stream", info.path),
        ("columns", show_schema(info.schema)),
        ("bound", f"{show_bound(info.bound)}{'' if info.bound is None else _MEANING[info.bound.isEnd]}"),
        ("clock", f"held by {waiting_for(info)}"),
        ("waiting", _held_back(info) if info.rowsHeldBack else ""),
        ("rows", f"{info.rows} accepted, {info.rejected} rejected; {info.seq} events in the log"),
        ("settings", settings),
        ("removed", f"the oldest {info.removed} rows" if info.removed else ""),
        ("", f"the oldest {info.rejectedRemoved} rejected rows" if info.rejectedRemoved else ""),
        ("forgotten", f"{info.forgotten} producers that left long ago" if info.forgotten else ""),
    ]
    lines = {label: fact(label, text, width) for label, text in facts if text}
    lines["clock"] += releasing(info)
    return [line for group in lines.values() for line in group]


def _held_back(info: StreamInfo) -> str:
    return f"{info.rowsHeldBack} row(s) are accepted, and wait for the bound"


def waiting_for(info: StreamInfo) -> str:
    """All producers that hold the bound back; if none does, the reason, which begins with "nobody"."""
    statuses = {producer.name: producer.status for producer in info.producers}
    if not info.holders or statuses[info.holders[0]] is Status.EXPECTED:
        return info.waitsFor
    more = f" and {len(info.holders) - _NAMED} more" if len(info.holders) > _NAMED else ""
    return ", ".join(info.holders[:_NAMED]) + more


def _producers(info: StreamInfo, width: int, now: datetime) -> list[str]:
    if not info.producers:
        return ["no producer yet"]
    legend = ["* holds the clock"] if info.holders else []
    return [*legend, *_producer_table(info, width, now)]


def _producer_table(info: StreamInfo, width: int, now: datetime) -> list[str]:
    """The table of the producers, with notes below each that needs one."""
    holders = set(info.holders)
    head, *groups = table(_PRODUCER, [_cells(producer, now) for producer in info.producers], width - 2)
    found = [f"  {line}" for line in head]
    for producer, (first, *rest) in zip(info.producers, groups, strict=True):
        holds = producer.name in holders
        found.append(styled(f"* {first}", bold=True) if holds else f"  {first}")
        found += [f"  {line}" for line in rest]
        found += [f"    {_cut(note, width - 4)}" for note in _notes(producer, holds, now)]
    return found


def _cells(producer: ProducerDescription, now: datetime) -> Sequence[str]:
    left = producer.leaseLeft
    waits = producer.status.value in ("attached", "idle")
    return (
        producer.name,
        _STATUS.get(producer.status, producer.status.value),
        show_bound(producer.bound),
        str(producer.accepted),
        str(producer.rejected),
        "" if producer.seen is None else duration(now - producer.seen),
        duration(left) if left is not None else "none" if waits else "",
    )


def _notes(producer: ProducerDescription, holds: bool, now: datetime) -> list[str]:
    if producer.sent is None:
        return []
    silence = now - producer.sent
    return [
        *([f"query {producer.query}"] if producer.query else []),
        *([f"has sent nothing for {duration(silence)}"] if holds and silence >= SILENT else []),
        *([f"taken over or reopened: epoch {producer.epoch}"] if producer.epoch > 1 else []),
        *([f"checkpoint {producer.checkpoint!r}"] if producer.checkpoint is not None else []),
        *([f"{producer.lag} messages behind the end of its partition, at its last commit"] if producer.lag else []),
        *([f"bounds up to {show_offsets(producer.cut)}"] if producer.cut else []),
        *([f"{producer.keys} values known; the weakest:"] if producer.keys else []),
        *[f"  {short_repr(value)} at {show_bound(bound)}" for value, bound in producer.weakestKeys],
    ]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 0)]}..."


def _readers(info: StreamInfo, width: int, now: datetime) -> list[str]:
    rows = [(reader.name, str(reader.seq), str(reader.unread), duration(now - reader.seen)) for reader in info.readers]
    return ["", *[line for lines in table(_READER, rows, width) for line in lines]] if rows else []

"""describeStream: reads the state of a stream."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound, as_bound
from spark_rowtime.bounds.key_order import declares_keys, weakest_known
from spark_rowtime.bounds.topic_cut import merged
from spark_rowtime.store import open_store
from spark_rowtime.store.backlog import of_snapshot, rows_held_back, rows_unread
from spark_rowtime.store.query_status import query_names
from spark_rowtime.store.record import ATTACHED, ProducerInfo
from spark_rowtime.store.retention import checkpoint_gone
from spark_rowtime.store.settings import not_default
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC, Snapshot
from spark_rowtime.stream_info import NAMED, ProducerDescription, ReaderDescription, StreamInfo
from spark_rowtime.types.arguments import known_keywords
from spark_rowtime.types.stranger import Stranger
from spark_rowtime.types.timestamps import from_micros


@known_keywords
def describeStream(path: str) -> StreamInfo:
    """Reports the schema, the bound, the producers and the readers of a stream.

    Args:
        path: The path of the stream, as for ``createStream``.

    Returns:
        The state of the stream as a StreamInfo.

    Raises:
        StreamNotFoundError: There is no stream at ``path``.
        StoreCorruptError: The stream's files do not hold what was written.
        InvalidOptionError: ``path`` names no kind of store that is known.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-describe", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-describe", producer="nyse") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        >>> info = rt.describeStream("memory://docs-describe")
        >>> info.rows, info.bound
        (1, RowtimeBound('2026-01-05T14:30:00Z'))
        >>> [(producer.name, producer.status.value) for producer in info.producers]
        [('nyse', 'left')]
    """
    return read_info(path, checkpoint_gone)


def read_info(path: str, gone: Callable[[str], bool]) -> StreamInfo:
    """Does what ``describeStream`` does. ``gone`` says whether the checkpoint of a reader, by its name, is gone.

    That asks the machine about a path which the reader has chosen, so it is not for everybody to know.
    """
    with open_store(path) as store:
        snapshot, (held_back, unread) = of_snapshot(
            store,
            lambda at: (rows_held_back(store, at.head), [rows_unread(store, at, r.position) for r in at.readers]),
            full=True,
        )
    return info_of(path, snapshot, held_back, unread, gone)


def info_of(
    path: str, snapshot: Snapshot, held_back: int, unread: Sequence[int], gone: Callable[[str], bool]
) -> StreamInfo:
    """Returns what is said of a full snapshot. ``unread`` has the number of rows that each reader has to read."""
    return StreamInfo(
        path,
        snapshot.schema,
        as_bound(snapshot.clock.floor),
        _producers(snapshot),
        snapshot.head.rows,
        snapshot.rejected,
        snapshot.head.seq,
        snapshot.clock.holder(),
        snapshot.horizon.rows,
        tuple(
            ReaderDescription(
                r.name,
                r.position.seq,
                from_micros(max(snapshot.wall - r.unseen, 0)),
                rows,
                gone(r.name),
                r.reads if r.reads in (READS_STREAM, READS_TOPIC) else None,
            )
            for r, rows in zip(snapshot.readers, unread, strict=True)
        ),
        snapshot.rejected_removed,
        tuple(snapshot.clock.holders()),
        held_back,
        not_default(snapshot.settings),
        snapshot.forgotten,
        snapshot.open_transactions,
    )


def _producers(snapshot: Snapshot) -> tuple[ProducerDescription, ...]:
    queries = query_names(snapshot)
    return tuple(_producer(snapshot, info, queries.get(info.name)) for info in snapshot.producers.values())


def _producer(snapshot: Snapshot, info: ProducerInfo, query: str | None) -> ProducerDescription:
    last, cut = snapshot.seen[info.name], merged(snapshot.cuts.get(info.name, ()))
    known, weakest = _keys(snapshot, info)
    waits = last.lease is not None and info.status in ATTACHED
    # What attached has declared its order; an account of late rows has not.
    came = bool(info.declaration or info.number)
    return ProducerDescription(
        info.name,
        info.status,
        as_bound(info.floor),
        info.accepted,
        info.rejected,
        info.epoch,
        info.checkpoint,
        from_micros(snapshot.wall - last.unseen) if came else None,
        from_micros(snapshot.wall - last.silent) if came else None,
        None if last.lease is None else timedelta(microseconds=last.lease),
        timedelta(microseconds=max((last.lease or 0) - last.unseen, 0)) if waits else None,
        known,
        tuple((value, RowtimeBound.fromFloor(max(floor, info.floor or 0))) for value, floor in weakest),
        None if cut is None else cut.offsets,
        query,
        messages_behind(info.checkpoint),
    )


def messages_behind(checkpoint: str | None) -> int | None:
    """How far a partition of a topic was read from its end, by the checkpoint of its adapter; None for any other."""
    if checkpoint is None or '"topicId"' not in checkpoint:
        return None
    try:
        found = Stranger.of_text(checkpoint)
        offset, end = found.whole("offset"), found.whole("end")
    except ValueError:
        return None
    return None if offset is None or end is None else max(end - offset, 0)


def _keys(snapshot: Snapshot, info: ProducerInfo) -> tuple[int, list[tuple[Any, int]]]:
    """Returns how many values of a producer's key column are known, and the weakest of them with their floors."""
    if not declares_keys(info.declaration):
        return 0, []
    return weakest_known(info.declaration, snapshot.schema, snapshot.keys.get(info.name, ()), NAMED)

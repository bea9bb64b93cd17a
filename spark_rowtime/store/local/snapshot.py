"""Reads a snapshot of the stream from its catalog."""

from dataclasses import replace

from spark_rowtime.store.local import cuts, key_floors, producers, readers, rejections, statuses
from spark_rowtime.store.local.ancestors import ancestors
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.log import Log
from spark_rowtime.store.local.raised import moved
from spark_rowtime.store.local.seal import Damaged
from spark_rowtime.store.local.uptime import Uptime
from spark_rowtime.store.snapshot import Snapshot


def read(path: str, catalog: Catalog, log: Log, clock: Uptime, wall: int, *, full: bool) -> Snapshot:
    """See ``Store.snapshot``. Call it in a transaction, or on a copy that nobody writes."""
    uptime = clock.look()
    stream, schema, settings = catalog.meta()
    totals, records = producers.totals(catalog), producers.everyone(catalog)
    brief = Snapshot(
        path,
        stream,
        ancestors(catalog.execute),
        schema,
        settings,
        wall,
        uptime,
        log.last,
        log.horizon(),
        {record.name: producers.with_checkpoint(catalog, record) for record in records},
        totals.forgotten,
        totals.rejected,
        rejections.totals(catalog).removed,
        rejections.newest(catalog),
        tuple(readers.known(catalog, uptime)),
        tuple(statuses.known(catalog, uptime)),
        forgotten_epoch=totals.forgotten_epoch,
        restarted=clock.rebooted(),
    )
    return _filled(catalog, brief) if full else brief


def _filled(catalog: Catalog, brief: Snapshot) -> Snapshot:
    moved_at = _moved_at(catalog, brief.head.floor)
    return replace(
        brief,
        moved=None if moved_at is None else max(brief.uptime - moved_at, 0),
        keys=key_floors.all_parts(catalog),
        cuts={name: found for name in cuts.producers(catalog) if (found := cuts.last(catalog, name))},
    )


def _moved_at(catalog: Catalog, bound: int | None) -> int | None:
    """Returns when the bound became what it is; None of a damaged log, which can be described all the same."""
    try:
        return None if bound is None else moved(catalog, bound)
    except Damaged:
        return None

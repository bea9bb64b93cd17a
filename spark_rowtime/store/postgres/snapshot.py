"""Reads a snapshot of the stream from its database, in one transaction and one or two round trips."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa

from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres import cuts, key_floors, log, log_state, records, registrations
from spark_rowtime.store.postgres.connection import Statement, gone, run
from spark_rowtime.store.postgres.log_state import LogState
from spark_rowtime.store.postgres.uptime import Moment
from spark_rowtime.store.settings import settings_of
from spark_rowtime.store.snapshot import ReportedStatus, Snapshot
from spark_rowtime.store.steady_clock import Reading
from spark_rowtime.types.timestamps import MINUTE_MICROS

STATUSES = 'SELECT role, name, content, seen FROM rowtime.accounts WHERE stream = %s ORDER BY role COLLATE "C", name'
ABOUT = "SELECT schema, settings FROM rowtime.streams WHERE id = %s"
OPEN_MICROS = MINUTE_MICROS
"""How long a transaction of the database is open before it is named: the server keeps what it may still see."""
_OPEN = (  # those of other users are seen by a role that may see them
    "SELECT pid, usename::text, application_name, extract(epoch FROM clock_timestamp() - xact_start)::bigint "
    "FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend' "
    "AND datname = current_database() AND pid <> pg_backend_pid() "
    "AND xact_start < clock_timestamp() - %s * interval '1 microsecond' ORDER BY xact_start LIMIT 5"
)
_BEGIN: Statement = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
_COMMIT: Statement = ("COMMIT", ())


class Reader:
    """Reads snapshots of the stream that the database has under the number ``stream`` and the name ``name``."""

    def __init__(self, store: Store, stream: int, name: str, moment: Callable[[LogState, Reading], Moment]) -> None:
        """``moment``: that of a reading of the database's clock."""
        self._store, self._stream, self._name, self._moment = store, stream, name, moment

    def read(self, connection: psycopg.Connection[Any], *, full: bool) -> Snapshot:
        """See ``Store.snapshot``. It may run again."""
        of_stream = (ABOUT, records.ALL, registrations.ALL, STATUSES, cuts.THERE)
        first = [
            _BEGIN,
            (log_state.SELECT, (self._stream, self._name)),
            *((sql, (self._stream,)) for sql in of_stream),
        ]
        _, ends, about, known, readers, told, has_cuts, *_ = run(connection, first if full else [*first, _COMMIT])
        if not ends:
            raise gone(self._store.path)
        head, at = log_state.loaded(ends[0])
        moment, (schema, settings) = self._moment(head, at), about[0]
        now = moment.uptime
        brief = Snapshot(
            self._store.path,
            self._store.stream,
            self._store.ancestors,
            pa.ipc.read_schema(pa.py_buffer(schema)),
            settings_of(settings),
            self._store.now(),
            now,
            head.head,
            head.beginning,
            {record.name: record for record in map(records.opened, known)},
            head.forgotten,
            head.rejected,
            head.rejected_removed,
            head.rejections,
            tuple(registrations.opened(readers, now)),
            tuple(ReportedStatus(role, name, content, max(now - seen, 0)) for role, name, content, seen in told),
            forgotten_epoch=head.forgotten_epoch,
            restarted=head.boot not in (None, moment.boot),
        )
        return self._filled(connection, brief, has_cuts=bool(has_cuts)) if full else brief

    def _filled(self, connection: psycopg.Connection[Any], brief: Snapshot, *, has_cuts: bool) -> Snapshot:
        last = [cuts.last(self._stream, name) for name in brief.records] if has_cuts else []
        asked: list[Statement] = [
            log.raised(self._stream, brief.head.floor or 0, brief.horizon.seq, brief.head.seq),
            (key_floors.ALL, (self._stream,)),
            (_OPEN, (OPEN_MICROS,)),
            *last,
        ]
        moved, keys, still_open, *found = run(connection, [*asked, _COMMIT])
        parts: dict[str, list[bytes]] = {}
        for producer, content in keys:
            parts.setdefault(producer, []).append(content)
        known = brief.head.floor is not None and moved and moved[0][0] > brief.horizon.seq
        opened = {name: cuts.opened(rows) for name, rows in zip(brief.records, found, strict=False) if rows}
        return replace(
            brief,
            moved=max(brief.uptime - log.raised_at(moved), 0) if known else None,
            keys=parts,
            cuts=opened,
            open_transactions=tuple(map(_open_transaction, still_open)),
        )


def _open_transaction(row: tuple[Any, ...]) -> str:
    """Returns the text for a row of the query."""
    pid, user, application, seconds = row
    return (
        f"a transaction in the database has been open for {seconds} s (process {pid} of user {user!r}, application "
        f"{application!r}): until it ends, VACUUM frees nothing that commits have replaced since. End it if nobody "
        f"needs it: SELECT pg_terminate_backend({pid})"
    )

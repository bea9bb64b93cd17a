"""Transactions of a database that have been open for long: the server keeps what they may still see."""

from typing import Any

from spark_rowtime.store.postgres.connection import Statement

OPEN_MICROS = 60_000_000
"""How long a transaction is open before it is named."""
_OPEN = (
    "SELECT pid, usename::text, application_name, extract(epoch FROM clock_timestamp() - xact_start)::bigint "
    "FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND backend_type = 'client backend' "
    "AND datname = current_database() AND pid <> pg_backend_pid() "
    "AND xact_start < clock_timestamp() - %s * interval '1 microsecond' ORDER BY xact_start LIMIT 5"
)


def statement() -> Statement:
    """Returns the query for the oldest of them. Those of other users are seen by a role that may see them."""
    return _OPEN, (OPEN_MICROS,)


def shown(row: tuple[Any, ...]) -> str:
    """Returns the text for a row of the query."""
    pid, user, application, seconds = row
    return (
        f"a transaction in the database has been open for {seconds} s (process {pid} of user {user!r}, application "
        f"{application!r}): until it ends, VACUUM frees nothing that commits have replaced since. End it if nobody "
        f"needs it: SELECT pg_terminate_backend({pid})"
    )

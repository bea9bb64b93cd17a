"""How long users of a stream wait for its lock in tests: whoever has it may stand still on a busy machine."""

import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spark_rowtime.store.local.directory import open_local

LOCK_SECONDS = 240


def wait_long_for_locks(setitem: Callable[[Any, str, int], object] = operator.setitem) -> None:
    """Lets this process wait for the locks of streams; ``setitem``: that of a MonkeyPatch, which undoes it."""
    setitem(open_local.__kwdefaults__, "busy_timeout", LOCK_SECONDS)
    with suppress(ImportError):  # no client of PostgreSQL is there
        from spark_rowtime.store.postgres import connection

        short, long = (f"lock_timeout = '{seconds}s'" for seconds in (connection.WAIT_SECONDS, LOCK_SECONDS))
        setitem(vars(connection), "SETTINGS", connection.SETTINGS.replace(short, long))
        setitem(connection.CLIENT, "connect_timeout", LOCK_SECONDS)

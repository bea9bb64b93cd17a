"""How long users of a stream wait for its lock in tests: whoever has it may stand still on a busy machine."""

import operator
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from spark_rowtime.store.local.directory import open_local

LOCK_SECONDS = 240


def wait_long_for_locks(setitem: Callable[[Any, str, Any], object] = operator.setitem) -> None:
    """Lets this process wait for the locks of streams; ``setitem``: that of a MonkeyPatch, which undoes it."""
    setitem(open_local.__kwdefaults__, "busy_timeout", LOCK_SECONDS)
    with suppress(ImportError):  # no client of PostgreSQL is there
        from spark_rowtime.store.postgres import connection

        setitem(vars(connection), "SETTINGS", with_minutes_for(connection.SETTINGS, "lock_timeout"))
        setitem(connection.CLIENT, "connect_timeout", LOCK_SECONDS)


def with_minutes_for(settings: str, name: str) -> str:
    """The settings of a session of PostgreSQL, where this limit, which is one of some seconds, is one of minutes."""
    longer, found = re.subn(rf"(?<={name} = )'\d+s'", f"'{LOCK_SECONDS}s'", settings)
    assert found == 1, (name, settings)
    return longer

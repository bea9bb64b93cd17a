"""The streams of which a stream is a copy, in the catalog of the copy.

A copy takes the place of its stream when it is restored. A reader's position in the former stream is one in the copy,
if it is not beyond the event up to which both are the same. Later events of both have the same numbers, but are others.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

from spark_rowtime.store.local.seal import intact, seal
from spark_rowtime.types.json_values import load

_FIND = "SELECT name, value, seal FROM meta WHERE name = ?"

Execute = Callable[..., Any]
"""``execute`` of an SQLite connection."""


def ancestors(execute: Execute) -> dict[str, int]:
    """Returns the ids of the streams of which this one is a copy, each with the last seq that both have."""
    row = execute(_FIND, ("ancestors",)).fetchone()
    return {} if row is None else dict(load(intact(row, "meta")[1]))


def become_copy(execute: Execute) -> None:
    """Gives the stream an id of its own, and the former one as an ancestor. Call it in a transaction."""
    former = intact(execute(_FIND, ("stream",)).fetchone(), "meta")[1]
    (seq,) = execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()
    changed = {"stream": str(uuid.uuid4()), "ancestors": json.dumps({**ancestors(execute), former: seq})}
    for values in changed.items():
        execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (*values, seal(values)))

"""The streams of which a stream is a copy, in the catalog of the copy.

A copy takes the place of its stream when it is restored. A reader's position in the former stream is one in the copy,
if it is not beyond the event up to which both are the same. Later events of both have the same numbers, but are others.
"""

import json
import uuid

from spark_rowtime.store.local import meta
from spark_rowtime.store.local.meta import Execute
from spark_rowtime.types.json_values import load


def ancestors(execute: Execute) -> dict[str, int]:
    """Returns the ids of the streams of which this one is a copy, each with the last seq that both have."""
    return dict(load(meta.get(execute, "ancestors") or "{}"))


def become_copy(execute: Execute) -> None:
    """Gives the stream an id of its own, and the former one as an ancestor. Call it in a transaction."""
    former = meta.get(execute, "stream")
    (seq,) = execute("SELECT COALESCE(MAX(seq), 0) FROM events").fetchone()
    meta.put(execute, stream=str(uuid.uuid4()), ancestors=json.dumps({**ancestors(execute), former: seq}))

"""Drains of a stream into a table, to be killed."""

import os
from typing import Any

import spark_rowtime as rt
from spark_rowtime.drain.gathering import GatheringSink


def drain_into(pipe: Any, stream: str, target: str, catalog: dict[str, str], dying: bool) -> None:
    """Drains in small commits for ever, and says the position after each; or, if it need not die, in large ones once.

    A process that imports PyIceberg reads the environment once, so the catalog is set before that.
    """
    os.environ.update(catalog)
    write = GatheringSink.commit

    def commit(sink: GatheringSink) -> None:
        write(sink)
        pipe.send(sink.checkpoint)

    GatheringSink.commit = commit  # type: ignore[method-assign]
    with (
        rt.openReader(stream, follow=dying) as reader,
        rt.openTableSink(target, reader.schema, **({"every": "0 s", "maxRows": 7} if dying else {})) as sink,
    ):
        if dying:
            reader._how = type(reader._how)("rowtime", max_rows=50)
        reader.drainTo(sink)

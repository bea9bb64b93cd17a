"""Shows how far ``rowtime gc`` is, by a look at the stream every now and then."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from spark_rowtime.admin.progress import Advance, progress_bar
from spark_rowtime.errors import RowtimeError
from spark_rowtime.store import open_store

LOOK_SECONDS = 0.5
"""How often it is looked at how many rows are removed."""


@contextmanager
def removal_progress(stream: str) -> Iterator[None]:
    """Shows on a terminal how many rows of the stream are removed, until the block ends."""
    with progress_bar("removing") as advance:
        if advance is None:
            yield
            return
        ended = threading.Event()
        looking = threading.Thread(target=_look, args=(stream, advance, ended), daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()


def _look(stream: str, advance: Advance, ended: threading.Event) -> None:
    with suppress(RowtimeError), open_store(stream) as store:
        while not ended.wait(LOOK_SECONDS):
            advance(store.horizon().rows, store.head().rows)

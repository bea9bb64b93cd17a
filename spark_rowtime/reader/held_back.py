"""What a reader in order of rowtime says where it ends, or stays quiet, at a stream that has rows but no bound."""

import logging

from spark_rowtime.store.backlog import of_snapshot, rows_held_back
from spark_rowtime.store.base import Store
from spark_rowtime.stream_info import waits_for

LOG = logging.getLogger("spark_rowtime.reader")


def say_held_back(store: Store) -> None:
    """Logs how many rows wait for a bound, and for whose; nothing if there are none."""
    snapshot, rows = of_snapshot(store, lambda at: rows_held_back(store, at.head))
    if not rows:
        return
    LOG.warning(
        "%d row(s) of %s wait for a bound, and none of them is read in order of rowtime: the stream has no bound yet, "
        "and waits for %s. Let its producers promise one (sendRowtimeBound) or close, or read with order='arrival'.",
        rows,
        store.path,
        waits_for(store.path, snapshot.clock.holder(), snapshot.producers.values()),
    )

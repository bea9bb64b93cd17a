"""A catalog in memory whose index is filled directly."""

import sqlite3
from collections.abc import Callable
from typing import Any

from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import seal
from spark_rowtime.store.widths import width_class


class MemoryCatalog(Catalog):
    """Trains with the given spans as seq 1, 2, ..."""

    def __init__(self, tables: str, spans: list[list[int]]) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.executescript(tables)
        self.execute = self.db.execute
        rows = [
            (seq, "sent", "p", 0, None, None, None, 0, 1, *span, width_class(*span), "s", 0, 0, 0)
            for seq, span in enumerate(spans, 1)
        ]
        self.db.executemany(f"INSERT INTO events VALUES ({', '.join('?' * 17)})", [(*row, seal(row)) for row in rows])

    def steps(self, call: Callable[[], Any]) -> int:
        """How many instructions of SQLite ``call`` takes, in tens."""
        taken = [0]

        def count() -> None:
            taken[0] += 1

        self.db.set_progress_handler(count, 10)
        call()
        self.db.set_progress_handler(None, 0)
        return taken[0]

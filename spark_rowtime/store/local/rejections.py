"""The rejected rows of the catalog."""

from collections.abc import Iterator

import pyarrow as pa

from spark_rowtime.store.base import Rejected
from spark_rowtime.store.local.catalog import Catalog


def add(catalog: Catalog, producer: str, number: int, now: int, rejected: Rejected, at_commit: bool) -> None:
    """Keeps what the producer's commit ``number`` rejected; ``at_commit``: what only the store could see."""
    rows = rejected.rows.serialize().to_pybytes()
    catalog.execute(
        "INSERT INTO rejected (producer, number, time, reason, bound, at_commit, rows) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (producer, number, now, rejected.reason, rejected.bound, at_commit, rows),
    )


def of_receipt(catalog: Catalog, schema: pa.Schema, producer: str, number: int) -> tuple[Rejected, ...]:
    """What the store rejected of the producer's commit ``number``."""
    rows = catalog.execute(
        "SELECT reason, bound, rows FROM rejected WHERE producer = ? AND number = ? AND at_commit ORDER BY id",
        (producer, number),
    )
    return tuple(Rejected(reason, bound, _batch(rows, schema)) for reason, bound, rows in rows)


def everything(catalog: Catalog, schema: pa.Schema) -> Iterator[tuple[str, Rejected]]:
    """Each rejection with its producer, in the order of commits."""
    found = catalog.execute("SELECT producer, reason, bound, rows FROM rejected ORDER BY id")
    for producer, reason, bound, rows in found:
        yield producer, Rejected(reason, bound, _batch(rows, schema))


def _batch(rows: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(rows), schema)

"""The rejected rows of the catalog."""

from collections.abc import Iterator

import pyarrow as pa

from spark_rowtime.store.base import Rejected
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import crc, intact, seal

MOST_BYTES = 100_000_000
"""A rejection of more is kept in several rows: SQLite takes a tenfold BLOB at the most."""
_COLUMNS = "producer, number, time, reason, bound, at_commit, rows, seal"
_ADD = f"INSERT INTO rejected ({_COLUMNS}) VALUES ({', '.join('?' * 8)})"  # noqa: S608  (constants)


def add(catalog: Catalog, producer: str, number: int, now: int, rejected: Rejected, at_commit: bool) -> None:
    """Keeps what the producer's commit ``number`` rejected; ``at_commit``: what only the store could see."""
    values = (producer, number, now, rejected.reason, rejected.bound, int(at_commit))
    for part in _parts(rejected.rows):
        rows = part.serialize().to_pybytes()
        catalog.execute(_ADD, (*values, rows, seal((*values, crc(rows)))))


def _parts(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
    if rows.nbytes <= MOST_BYTES or rows.num_rows < 2:
        return [rows]
    half = rows.num_rows // 2
    return _parts(rows.slice(0, half)) + _parts(rows.slice(half))


def of_receipt(catalog: Catalog, schema: pa.Schema, producer: str, number: int) -> tuple[Rejected, ...]:
    """What the store rejected of the producer's commit ``number``."""
    found = _select(catalog, schema, "WHERE producer = ? AND number = ? AND at_commit", producer, number)
    return tuple(rejected for _, rejected in found)


def everything(catalog: Catalog, schema: pa.Schema) -> Iterator[tuple[str, Rejected]]:
    """Each rejection with its producer, in the order of commits."""
    return _select(catalog, schema, "")


def _select(catalog: Catalog, schema: pa.Schema, where: str, *values: object) -> Iterator[tuple[str, Rejected]]:
    for *row, rows, check in catalog.execute(f"SELECT {_COLUMNS} FROM rejected {where} ORDER BY id", values):  # noqa: S608
        producer, _, _, reason, bound, *_ = intact((*row, crc(rows), check), "rejected")
        yield producer, Rejected(reason, bound, pa.ipc.read_record_batch(pa.py_buffer(rows), schema))

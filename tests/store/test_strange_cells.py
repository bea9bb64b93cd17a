"""A writer puts a number or a text into a cell that no store puts there: readers say that the stream is damaged."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.admin.streams import copyStream
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.local.seal import crc, seal

HUGE, TINY = 1 << 62, -(1 << 63)
CELLS: list[tuple[str, str, Any]] = [
    *(("producers", "status", text) for text in ("", "x")),
    *(("producers", column, value) for column in ("floor", "seen", "sent") for value in (HUGE, TINY)),
    *(("events", column, None) for column in ("rows", "least", "largest", "length", "checksum")),
    *(("events", column, value) for column in ("least", "largest", "stream_floor") for value in (HUGE, TINY)),
    ("events", "rows", -1),
    ("events", "time", TINY),
    ("events", "kind", "no such"),
    *(("heads", column, value) for column in ("ahead", "floor", "largest", "stamp") for value in (HUGE, TINY)),
    *(("heads", "horizon_largest", value) for value in (HUGE, TINY)),
    *(("rejected", column, value) for column in ("time", "bound") for value in (HUGE, TINY)),
    ("rejected", "rows", b"no message"),
]
LOCAL = {"heads": "uptime", "stamp": "counted"}


def filled(path: str) -> str:
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path, producer="a", onLate="reject", lease=None) as sink:
        sink.sendRow(("2026-01-01T00:00:00Z", 0))
        sink.sendRowtimeBound("2026-01-01T00:30:00Z")
        sink.flush(checkpoint="one")
        sink.sendRow(("2026-01-01T00:10:00Z", 1))
        sink.sendRow(("2026-01-01T01:00:00Z", 2))
    return path


def calls(path: str) -> dict[str, Callable[[], object]]:
    def read(order: str) -> list[object]:
        with rt.openReader(path, order=order) as reader:
            return [train.rows.num_rows for train in reader]

    return {
        "describe": lambda: str(rt.describeStream(path)),
        "why": lambda: str(rt.why(path)),
        "arrival": lambda: read("arrival"),
        "rowtime": lambda: read("rowtime"),
        "rejected": lambda: rt.rejectedRows(path).to_pylist(),
        "copy": lambda: copyStream(path, path + "-copy"),
    }


def damage(path: str) -> list[str]:
    """What the calls say of a stream, and the check. Other errors of theirs than RowtimeErrors are raised."""
    said = list[str]()
    for call in calls(path).values():
        try:
            call()
        except rt.StoreCorruptError as error:
            said.append(str(error))
        except rt.RowtimeError:
            pass
    return said + check_store(path).damage


@pytest.mark.parametrize(("table", "column", "value"), CELLS, ids=repr)
def test_in_a_database(postgres: Any, request: pytest.FixtureRequest, table: str, column: str, value: Any) -> None:
    path = filled(postgres.url(f"cells/{request.node.name}"))
    with open_store(path) as store:
        number = store.number
    first = f"SELECT max(ctid) FROM rowtime.{table} WHERE stream = %s" + (
        " AND width IS NOT NULL" if table == "events" and column != "time" else ""
    )
    with postgres.connect() as connection:
        sql = f'UPDATE rowtime.{table} SET "{column}" = %s WHERE ctid = ({first})'
        assert connection.execute(sql, (value, number)).rowcount == 1
    assert damage(path)
    rt.deleteStream(path, force=True)


@pytest.mark.parametrize(("table", "column", "value"), CELLS, ids=repr)
def test_in_a_catalog(tmp_path: Any, table: str, column: str, value: Any) -> None:
    if column in ("floor", "largest", "horizon_largest", "stamp") and table == "heads":
        pytest.skip("a catalog has this in its events")
    path = filled(str(tmp_path / "s"))
    with closing(sqlite3.connect(f"{path}/catalog.db", isolation_level=None)) as db:
        change(db, LOCAL.get(table, table), LOCAL.get(column, column), value)
    assert damage(path)


def change(db: sqlite3.Connection, table: str, column: str, value: Any) -> None:
    """Changes the cell of a row, of an event with a train, and computes the row's checksums again."""
    which = {"time": "ORDER BY seq DESC"}.get(column, "WHERE width IS NOT NULL") if table == "events" else ""
    cursor = db.execute(f"SELECT * FROM {table} {which} LIMIT 1")
    cells = dict(zip([name for name, *_ in cursor.description], cursor.fetchone(), strict=True))
    first = next(iter(cells))
    key, cells[column] = cells[first], value
    if table == "producers":
        cells["ticking"] = seal(tuple(cells.values())[:6])
    unsealed = {"seal", "ticking", *(["id"] if table == "rejected" else [])}
    cells["seal"] = seal(tuple(crc(cell) for name, cell in cells.items() if name not in unsealed))
    names = ", ".join(f"{name} = ?" for name in cells)
    db.execute(f"UPDATE {table} SET {names} WHERE {first} = ?", (*cells.values(), key))

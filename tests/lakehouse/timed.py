"""Tables of orders whose commits have chosen times."""

import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.lakehouse.iceberg import IcebergOrders
from tests.lakehouse.orders import COLUMNS, Orders
from tests.streams import at

FIRST = "00:00"
"""When the tables were made."""
Order = tuple[str, str]
LOG = "_delta_log"


class TimedOrders(Orders):
    """A Delta table. Its commits are written file by file, since no writer takes a time."""

    def __init__(self, spark: Any, folder: Path) -> None:
        super().__init__(spark, folder)
        self.rewrite(0, {"timestamp": millis(FIRST)})

    def put_at(self, committed: str, *rows: Order) -> int:
        """A commit at that time, with a file of these rows, or with none. Returns its version."""
        return self.put_saying({"timestamp": millis(committed)}, *rows)

    def put_saying(self, info: dict[str, Any] | None, *rows: Order) -> int:
        """The same with this commitInfo, or without one."""
        said = [] if info is None else [{"commitInfo": {"operation": "WRITE", **info}}]
        version = DeltaTable(self.path).version() + 1
        self._write(version, [*said, *([{"add": self._file(rows)}] if rows else [])])
        return version

    def committed(self, version: int) -> int:
        """When a version was committed, in milliseconds, by its log."""
        infos = [action["commitInfo"] for action in self._actions(version) if "commitInfo" in action]
        return int(infos[0].get("inCommitTimestamp", infos[0]["timestamp"]))

    def rewrite(self, version: int, info: dict[str, Any]) -> None:
        """Gives a commit another commitInfo, before a query reads it."""
        rest = [action for action in self._actions(version) if "commitInfo" not in action]
        self._write(version, [{"commitInfo": {"operation": "WRITE", **info}}, *rest])

    def _actions(self, version: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._commit(version).read_text().splitlines()]

    def _write(self, version: int, actions: list[dict[str, Any]]) -> None:
        """A query that runs sees all of it, or nothing."""
        new = Path(self.path, LOG, f"_{uuid4().hex}")
        new.write_text("".join(json.dumps(action) + "\n" for action in actions))
        new.rename(self._commit(version))

    def _commit(self, version: int) -> Path:
        return Path(self.path, LOG, f"{version:020}.json")

    def _file(self, rows: tuple[Order, ...]) -> dict[str, Any]:
        """The file of these rows, as the log adds it."""
        file = Path(self.path, f"{uuid4().hex}.parquet")
        times = [at(clock) for clock, _ in rows]
        found = [{"ts": datetime.fromisoformat(time), "k": k} for time, (_, k) in zip(times, rows, strict=True)]
        pq.write_table(pa.Table.from_pylist(found, COLUMNS), file)
        largest = {"ts": max(times).replace("Z", ".000Z")}
        stats = {"numRecords": len(rows), "maxValues": largest, "nullCount": {"ts": 0}}
        size = {"size": file.stat().st_size, "modificationTime": 0, "partitionValues": {}}
        return {"path": file.name, "dataChange": True, "stats": json.dumps(stats), **size}


class TimedIceberg(IcebergOrders):
    """An Iceberg table. PyIceberg's clock is set; Spark's is not, and no commit may have a time before its parent's."""

    def __init__(self, spark: Any, folder: Path, environment: pytest.MonkeyPatch) -> None:
        self._environment = environment
        self._set(FIRST)
        super().__init__(spark, folder)

    def put_at(self, committed: str, *rows: Order) -> int:
        """A snapshot at that time, with a file of these rows, or with none. Returns its id."""
        self._set(committed)
        return self.put(*rows)

    def committed(self, snapshot: int) -> int:
        """When a snapshot was made, in milliseconds, by the table's metadata."""
        return int(self.table.snapshot_by_id(snapshot).timestamp_ms)

    def _set(self, clock: str) -> None:
        now = datetime.fromisoformat(at(clock))
        stopped = SimpleNamespace(time=now.timestamp, datetime=SimpleNamespace(now=lambda: now))
        self._environment.setattr("pyiceberg.table.snapshots.time", stopped)
        self._environment.setattr("pyiceberg.table.metadata.datetime", stopped)


def millis(clock: str) -> int:
    """The milliseconds since 1970 of a clock of the day."""
    return int(datetime.fromisoformat(at(clock)).timestamp() * 1000)

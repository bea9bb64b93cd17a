"""Where the tables of a test lie, and how those that did not write them read them: DuckDB and Polars."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import duckdb_ext
import polars
import pyarrow as pa

import spark_rowtime as rt
from spark_rowtime.types.timestamps import to_micros
from tests.patience import LOCK_SECONDS

FORMATS = ("delta", "iceberg", "parquet")
TRANSACTIONAL = ("delta", "iceberg")


class Lake:
    """A folder with a stream and a table of each format."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream = str(folder / "orders.rowtime")
        self.catalog = {
            "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{folder}/catalog.db?timeout={LOCK_SECONDS}",
            "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"file://{folder}/warehouse",
        }

    def target(self, kind: str) -> str:
        places = {
            "delta": f"{self.folder}/delta",
            "iceberg": "lake.shop.orders",
            "parquet": f"{self.folder}/parquet/date=%Y-%m-%d/hour=%H",
        }
        return f"{kind}:{places[kind]}"

    def drain(self, kind: str, **options: Any) -> None:
        """Drains all that the stream has. No time passes by which a commit is due before the end."""
        given = {"every": "1 hour", **options}
        with rt.openReader(self.stream) as reader, rt.openTableSink(self.target(kind), reader.schema, **given) as to:
            reader.drainTo(to)

    def read(self, kind: str, order: str = "rowtime") -> pa.Table:
        """All rows, by DuckDB and its extensions, sorted by a column."""
        connection = duckdb.connect(config={"extension_directory": f"{duckdb_ext.__path__[0]}/extensions"})
        for extension in ("parquet", "avro", "delta", "iceberg"):
            connection.execute(f"LOAD {extension}")
        connection.execute("SET TimeZone = 'UTC'")
        what = {
            "delta": lambda: f"delta_scan('{self.folder}/delta')",
            "iceberg": lambda: f"iceberg_scan('{self._metadata()}')",
            "parquet": lambda: f"read_parquet('{self.folder}/parquet/*/*/*.parquet', hive_partitioning=false)",
        }[kind]()
        return connection.execute(f"SELECT * FROM {what} ORDER BY {order}").fetch_arrow_table()

    def read_by_polars(self, kind: str) -> polars.DataFrame:
        frame = {
            "delta": lambda: polars.scan_delta(f"{self.folder}/delta"),
            "iceberg": lambda: polars.scan_iceberg(self._metadata()),
            "parquet": lambda: polars.scan_parquet(f"{self.folder}/parquet/*/*/*.parquet", hive_partitioning=False),
        }[kind]()
        return frame.collect().sort("rowtime")

    def numbers(self, kind: str) -> list[int]:
        """The column n, by DuckDB."""
        return self.read(kind).column("n").to_pylist()

    def commits(self, kind: str) -> list[dict[str, str]]:
        """The properties of each commit of spark-rowtime, oldest first, as the format's library shows them."""
        if kind == "delta":
            from deltalake import DeltaTable

            found = DeltaTable(f"{self.folder}/delta").history()[::-1]
        else:
            from pyiceberg.catalog import load_catalog

            snapshots = load_catalog("lake").load_table("shop.orders").metadata.snapshots
            found = [s.summary.additional_properties for s in snapshots]
        ours = [{k: v for k, v in commit.items() if k.startswith("rowtime.")} for commit in found]
        return [commit for commit in ours if commit]

    def made(self, kind: str) -> bool:
        """Whether the table is there; a kill may come before that."""
        if kind == "iceberg":
            with sqlite3.connect(self.folder / "catalog.db", LOCK_SECONDS) as catalog:
                tables = catalog.execute("SELECT name FROM sqlite_master WHERE name = 'iceberg_tables'").fetchall()
                return bool(tables and catalog.execute("SELECT count(*) FROM iceberg_tables").fetchone()[0])
        place = {"delta": "delta/_delta_log/*.json", "parquet": "parquet/date=*/*/*.parquet"}[kind]
        return any(self.folder.glob(place))

    def bound(self, kind: str) -> int | None:
        """The floor of the table's bound, as the newest commit's plain JSON has it."""
        if kind == "parquet":
            file = self.folder / "parquet/_rowtime/state.json"
            found = json.loads(file.read_text()) if file.exists() else {}
        elif kind == "delta":
            logs = sorted((self.folder / "delta/_delta_log").glob("*.json"))
            found = (
                next(
                    (
                        json.loads(text)["commitInfo"]
                        for text in logs[-1].read_text().splitlines()
                        if "commitInfo" in text
                    ),
                    {},
                )
                if logs
                else {}
            )
        else:
            found = json.loads(Path(self._metadata()[7:]).read_text()).get("properties", {}) if self.made(kind) else {}
        return to_micros(found["rowtime.bound"]) if "rowtime.bound" in found else None

    def _metadata(self) -> str:
        with sqlite3.connect(self.folder / "catalog.db", LOCK_SECONDS) as catalog:
            (place,) = catalog.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
        return str(place)

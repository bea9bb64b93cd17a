"""A Delta table of orders, written commit by commit by a writer with bounds and by others."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import spark_rowtime as rt
from spark_rowtime.drain.properties import BOUND, STRICT
from tests.lakehouse.formats import DeltaTables, Tables
from tests.spark.observed_query import Observed
from tests.streams import at

COLUMNS = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), pa.field("k", pa.string())])


class Orders:
    """A table in the test's folder, with the columns ts and k. Times are clocks of one day, such as ``10:00``."""

    skipping: ClassVar[dict[str, Any]] = {"skipChangeCommits": True}
    """Options of a read with which a query goes by commits that change rows."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        folder.mkdir(exist_ok=True)
        self.tables: Tables = DeltaTables(folder)
        self.path = str(folder / "orders")
        DeltaTable.create(self.path, COLUMNS)

    def put(self, *rows: tuple[str, str], bound: str | None = None, strict: bool = False, **said: str) -> int:
        """One commit with these rows, in one file, and a bound or none, and more properties. Returns its version."""
        properties = said if bound is None else {BOUND: at(bound), STRICT: str(strict).lower(), **said}
        times = [{"ts": datetime.fromisoformat(at(clock)), "k": k} for clock, k in rows]
        return self.append(pa.Table.from_pylist(times, COLUMNS), properties)

    def append(self, rows: pa.Table, properties: dict[str, str]) -> int:
        """One commit with these rows and properties. Returns its version."""
        commit = CommitProperties(custom_metadata=properties)
        write_deltalake(self.path, rows, mode="append", commit_properties=commit)
        return DeltaTable(self.path).version()

    def read(self, **options: Any) -> DataFrame:
        frame: DataFrame = self.spark.readStream.format("delta").options(**options).load(self.path)
        return frame

    @property
    def rejected(self) -> str:
        """A table of the same format for late rows."""
        return f"delta:{self.folder / 'late'}"

    def kept(self) -> DataFrame:
        """The late rows."""
        frame: DataFrame = self.spark.read.format("delta").load(self.rejected.removeprefix("delta:"))
        return frame

    def rows(self, **options: Any) -> DataFrame:
        return rt.punctuate(self.read(**options), "ts")

    def observed(self, frame: DataFrame, name: str = "query") -> Observed:
        return Observed(frame, self.folder / name)

    def sql(self, statement: str) -> None:
        """A statement in which ``ORDERS`` is the table, by Spark."""
        self.spark.sql(statement.replace("ORDERS", f"delta.`{self.path}`"))

    def keep_statistics(self, *, of_time: bool) -> None:
        """Whether files that Spark writes from now on have statistics of the column ts."""
        column = "ts" if of_time else "k"
        self.sql(f"ALTER TABLE ORDERS SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = '{column}')")


def hourly(frame: DataFrame) -> DataFrame:
    return frame.groupBy(f.window("ts", "1 hour"), "k").count()


def progress_of(query: Any) -> list[Any]:
    """Of each batch of this run."""
    return [json.loads(one.json) for one in query.recentProgress]


def late(query: Observed) -> dict[int, int]:
    """The late rows of each batch of this run that has read rows, by the query's progress."""
    progress = progress_of(query.query)
    return {
        one["batchId"]: sum(int(source["metrics"]["rowsLate"]) for source in one["sources"])
        for one in progress
        if one["numInputRows"]
    }

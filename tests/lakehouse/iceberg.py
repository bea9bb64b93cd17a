"""An Iceberg table of orders, written snapshot by snapshot through PyIceberg."""

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import DataFrame

from tests.lakehouse.iceberg_tables import CATALOG, IcebergTables, new_tables, opened
from tests.lakehouse.orders import COLUMNS, Orders


class IcebergOrders(Orders):
    """A table in a namespace of its own. An option ``maxFilesPerTrigger`` has Iceberg's name where it is read."""

    skipping: ClassVar[dict[str, Any]] = {
        "streaming-skip-overwrite-snapshots": "true",
        "streaming-skip-delete-snapshots": "true",
    }

    tables: IcebergTables

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.tables = spark, folder, new_tables()
        folder.mkdir(exist_ok=True)
        self.space = self.tables.space
        self.path = self.name("orders")
        self._catalog = opened()
        self._catalog.create_table(f"{self.space}.orders", COLUMNS)

    def name(self, table: str) -> str:
        """The name by which Spark knows a table of the namespace."""
        return self.tables.place(table)

    @property
    def table(self) -> Any:
        """The table as it is now, by PyIceberg."""
        return self._catalog.load_table(f"{self.space}.orders")

    def append(self, rows: pa.Table, properties: dict[str, str]) -> int:
        table = self.table
        table.append(rows, snapshot_properties=properties)
        return int(table.current_snapshot().snapshot_id)

    @property
    def rejected(self) -> str:
        return f"iceberg:{self.name('late')}"

    def kept(self) -> DataFrame:
        self.spark.sql(f"REFRESH TABLE {self.name('late')}")  # the catalog of a query's session is another one
        frame: DataFrame = self.spark.table(self.name("late"))
        return frame

    def read(self, **options: Any) -> DataFrame:
        named = {_NAMES.get(name, name): value for name, value in options.items()}
        frame: DataFrame = self.spark.readStream.format("iceberg").options(**named).load(self.path)
        return frame

    def sql(self, statement: str) -> None:
        """A statement in which ``ORDERS`` is the table, by Spark."""
        self.spark.sql(statement.replace("ORDERS", self.path))

    def keep_statistics(self, *, of_time: bool) -> None:
        mode = "full" if of_time else "none"
        self.sql(f"ALTER TABLE ORDERS SET TBLPROPERTIES ('write.metadata.metrics.column.ts' = '{mode}')")

    def call(self, procedure: str, arguments: str, table: str = "orders") -> None:
        """One of Iceberg's procedures on a table."""
        self.spark.sql(f"CALL {CATALOG}.system.{procedure}(table => '{self.name(table)}', {arguments})")

    def expire(self) -> None:
        """All snapshots but the newest one."""
        self.call("expire_snapshots", "older_than => now(), retain_last => 1")

    def again(self) -> None:
        """Drops the table, and makes an empty one of that name."""
        self._catalog.drop_table(f"{self.space}.orders")
        self._catalog.create_table(f"{self.space}.orders", COLUMNS)


_NAMES = {"maxFilesPerTrigger": "streaming-max-files-per-micro-batch"}

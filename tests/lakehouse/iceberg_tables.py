"""Iceberg tables in a catalog that is a file, which Spark opens, and PyIceberg, too."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.lakehouse.commits import Commit, iceberg_commits
from tests.lakehouse.formats import Tables
from tests.patience import LOCK_SECONDS

CATALOG = "lake"
_NUMBERS = count()


def settings(folder: Path) -> dict[str, str]:
    """The settings of a session with the catalog, which is a file of the folder."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout={LOCK_SECONDS * 1000}",
        f"{catalog}.warehouse": f"file://{folder}/warehouse",
    }


def configure(folder: Path, environment: pytest.MonkeyPatch) -> None:
    """Configures PyIceberg for the same catalog, and makes it."""
    environment.setenv(
        f"PYICEBERG_CATALOG__{CATALOG.upper()}__URI", f"sqlite:///{folder}/catalog.db?timeout={LOCK_SECONDS}"
    )
    environment.setenv(f"PYICEBERG_CATALOG__{CATALOG.upper()}__WAREHOUSE", f"file://{folder}/warehouse")
    opened()


def opened() -> Any:
    """The catalog, by PyIceberg."""
    from pyiceberg.catalog import load_catalog

    return load_catalog(CATALOG)


def configured() -> Path:
    """The folder of the catalog."""
    return Path(opened().properties["warehouse"].removeprefix("file://")).parent


class IcebergTables(Tables):
    """In a namespace of the catalog."""

    format = "iceberg"
    limits: ClassVar[dict[str, str]] = {
        "maxFilesPerTrigger": "streaming-max-files-per-micro-batch",
        "maxBytesPerTrigger": "streaming-max-rows-per-micro-batch",
    }

    def __init__(self, space: str) -> None:
        self.space = space

    @property
    def where(self) -> tuple[str, ...]:
        return str(configured()), self.space

    def place(self, table: str) -> str:
        return f"{CATALOG}.{self.space}.{table}"

    def ident(self, table: str) -> str:
        return self.place(table)

    def create(self, table: str, columns: pa.Schema, partition: str) -> None:
        with opened().create_table(f"{self.space}.{table}", columns).update_spec() as spec:
            spec.add_identity(partition)

    def write(self, writer: Any, table: str) -> Any:
        return writer.format("iceberg").toTable(self.place(table))

    def append(self, table: str, rows: pa.Table, properties: dict[str, str]) -> None:
        self.loaded(table).append(rows, snapshot_properties=properties)

    def compact(self, spark: SparkSession, table: str) -> None:
        options = "options => map('min-input-files', '2')"
        spark.sql(f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.place(table)}', {options})")

    def is_there(self, table: str) -> bool:
        return bool(opened().table_exists(f"{self.space}.{table}"))

    def rows(self, table: str) -> pa.Table:
        return self.loaded(table).scan().to_arrow()

    def commits(self, table: str, column: str) -> Iterator[Commit]:
        return iceberg_commits(self.loaded(table), column)

    def files(self, table: str) -> int:
        return len(list(self._folder(table).rglob("data/**/*.parquet")))

    def versions(self, table: str) -> int:
        return len(list(self._folder(table).glob("metadata/*.metadata.json")))

    def loaded(self, table: str) -> Any:
        """A table as it is now, by PyIceberg."""
        return opened().load_table(f"{self.space}.{table}")

    def _folder(self, table: str) -> Path:
        return configured() / "warehouse" / self.space / table


def new_tables() -> IcebergTables:
    """Tables in a namespace that is new."""
    space = f"test{next(_NUMBERS)}"
    opened().create_namespace(space)
    return IcebergTables(space)

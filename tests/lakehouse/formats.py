"""Tables of one format by their names, for tests that do the same over tables of each."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from tests.lakehouse.commits import LOG, Commit, commits


class Tables(ABC):
    """Tables that Spark reads and writes as streams, and that others write through the library of the format."""

    format: ClassVar[str]
    limits: ClassVar[dict[str, str]] = {}
    """The names of options that limit a batch, by Delta's names for them."""

    def target(self, table: str) -> str:
        """A table as this project names it."""
        return f"{self.format}:{self.place(table)}"

    @property
    @abstractmethod
    def where(self) -> tuple[str, ...]:
        """Where the tables are, as a process of its own is told it."""

    @abstractmethod
    def place(self, table: str) -> str:
        """A table as a stream of Spark names it."""

    @abstractmethod
    def ident(self, table: str) -> str:
        """A table as SQL names it."""

    def make(self, spark: SparkSession, table: str, columns: str) -> None:
        """Makes a table that queries read before they are written, unless it is there."""
        spark.sql(f"CREATE TABLE IF NOT EXISTS {self.ident(table)} ({columns}) USING {self.format}")

    @abstractmethod
    def create(self, table: str, columns: pa.Schema, partition: str) -> None:
        """Makes a table whose files are of one value of a column each."""

    def read(self, spark: SparkSession, table: str, **limits: str) -> DataFrame:
        """A stream over a table."""
        named = {self.limits.get(name, name): value for name, value in limits.items()}
        return spark.readStream.format(self.format).options(**named).load(self.place(table))

    @abstractmethod
    def write(self, writer: Any, table: str) -> Any:
        """Starts a query into a table by the format's own sink."""

    @abstractmethod
    def append(self, table: str, rows: pa.Table, properties: dict[str, str]) -> None:
        """A commit with these rows and properties."""

    @abstractmethod
    def compact(self, spark: SparkSession, table: str) -> None:
        """Rewrites small files as larger ones."""

    @abstractmethod
    def is_there(self, table: str) -> bool:
        """Whether there is a table of the name."""

    @abstractmethod
    def rows(self, table: str) -> pa.Table:
        """The rows of a table."""

    @abstractmethod
    def commits(self, table: str, column: str) -> Iterator[Commit]:
        """The commits of a table, oldest first."""

    @abstractmethod
    def files(self, table: str) -> int:
        """How many data files there are in the folder of a table, of its commits or not."""

    @abstractmethod
    def versions(self, table: str) -> int:
        """How many commits a table has had, by its files."""


class DeltaTables(Tables):
    """In a folder."""

    format = "delta"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def where(self) -> tuple[str, ...]:
        return (str(self.folder),)

    def place(self, table: str) -> str:
        return str(self.folder / table)

    def ident(self, table: str) -> str:
        return f"delta.`{self.place(table)}`"

    def create(self, table: str, columns: pa.Schema, partition: str) -> None:
        DeltaTable.create(self.place(table), columns, partition_by=[partition])

    def write(self, writer: Any, table: str) -> Any:
        return writer.format("delta").start(self.place(table))

    def append(self, table: str, rows: pa.Table, properties: dict[str, str]) -> None:
        commit = CommitProperties(custom_metadata=properties)
        write_deltalake(self.place(table), rows, mode="append", commit_properties=commit)

    def compact(self, spark: SparkSession, table: str) -> None:
        DeltaTable(self.place(table)).optimize.compact()

    def is_there(self, table: str) -> bool:
        return DeltaTable.is_deltatable(self.place(table))

    def rows(self, table: str) -> pa.Table:
        return DeltaTable(self.place(table)).to_pyarrow_table()

    def commits(self, table: str, column: str) -> Iterator[Commit]:
        return commits(self.folder / table, column)

    def files(self, table: str) -> int:
        return len(list((self.folder / table).glob("*.parquet")))

    def versions(self, table: str) -> int:
        return len(list((self.folder / table / LOG).glob("*.json")))

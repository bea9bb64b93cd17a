"""Plays a random program: what it writes into its tables, its two queries, and what must hold of their results."""

from collections import Counter
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import spark_rowtime as rt
from spark_rowtime.drain.properties import BOUND, STRICT
from spark_rowtime.types.timestamps import EPOCH, show_micros
from tests.lakehouse.commits import require_lawful
from tests.lakehouse.formats import Tables
from tests.lakehouse.programs import KEYS, MIDDLE, ORDERS, Compact, Program, Put, Restart, Row, Step, Stray
from tests.law7.grammar import COLUMNS, Query
from tests.law7.machine import MISTAKEN
from tests.spark.observed_query import Observed, Repeated, micros

START, MINUTE = micros("10:00"), 60_000_000
END = "9999-12-31T23:59:59.999998Z"
SCHEMA = pa.schema(
    [
        pa.field("rowtime", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("k", pa.int32()),
        pa.field("v", pa.int64()),
    ]
)
Rows = Counter[tuple[int, int | None, int]]
"""Rows with their times in microseconds."""


class Into(Observed):
    """A query into the table in the middle by the format's own sink. Its batches are looked at in the table."""

    def __init__(self, frame: DataFrame, folder: Path, tables: Tables) -> None:
        super().__init__(frame, folder)
        self.tables = tables

    def __enter__(self) -> Self:
        writer = self.frame.writeStream.option("checkpointLocation", str(self.checkpoint))
        self.query = self.tables.write(writer.option("rowtimeBound", "rowtime"), MIDDLE)
        return self


class Promising(Repeated):
    """Law: no row is below an earlier promise."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        super().__call__(frame, batch)
        earlier = [promise for before, (_, promise) in self.first.items() if before < batch]
        said = [promise["rowtime"] for promise in earlier if "rowtime" in promise]
        floor = max(map(micros, said), default=0)
        below = [row for row in self.batches[batch] if micros(row[0]) < floor]
        assert not below, f"batch {batch}: {below} below {said}"

    @property
    def rows(self) -> Rows:
        """All that it has written."""
        return Counter((micros(time), k, v) for rows, _ in self.first.values() for time, k, v in rows)


class Life:
    """A program that is played, over tables of its own, and with checkpoints in a folder."""

    def __init__(self, spark: SparkSession, program: Program, tables: Tables, folder: Path) -> None:
        self.spark, self.program, self.tables = spark, program, tables
        self.batches = spark.newSession()
        self.batches.conf.set("spark.sql.optimizer.excludedRules", ",".join(MISTAKEN))
        self.floor, self.values = 0, count(1)
        self.others: dict[str, Rows] = {ORDERS: Counter(), MIDDLE: Counter()}
        for table in (ORDERS, MIDDLE):
            tables.create(table, SCHEMA if table == ORDERS else _nullable(SCHEMA), "k")
        silver, gold = program.queries
        self.queries = (
            Into(silver.frame(lambda _: self.read(0)), folder / "checkpoint-silver", tables),
            Promising(gold.frame(lambda _: self.read(1)), folder / "checkpoint-gold"),
        )
        self.is_running = False

    def read(self, query: int) -> DataFrame:
        table, (limit, value) = (ORDERS, MIDDLE)[query], self.program.limits[query]
        rows = self.tables.read(self.spark, table, **{limit: value}).where("rowtime IS NOT NULL")
        return rt.punctuate(rows, "rowtime", rejected=self.tables.target(f"late_{table}"))

    def play(self) -> None:
        """All commands, and in the end the bound that closes everything; a query that runs is stopped in any case."""
        try:
            for command in self.program.commands:
                self.apply(command)
            self.commit(ORDERS, [], END)
            self.step()
        finally:
            if self.is_running:
                self.stop()
        self.require_whole()

    def apply(self, command: Any) -> None:
        match command:
            case Put(ahead, step):
                rows = [Row(self.floor + minutes, k, next(self.values)) for minutes, k in ahead]
                self.floor += step
                self.commit(ORDERS, rows, show_micros(START + self.floor * MINUTE))
            case Stray(table, around):
                self.stray(table, [Row(self.floor + minutes, k, next(self.values)) for minutes, k in around])
            case Compact(table):
                self.tables.compact(self.spark, table)
            case Step():
                self.step()
            case Restart(query, crashed):
                self.restart(self.queries[query], crashed)

    def stray(self, table: str, rows: list[Row]) -> None:
        self.commit(table, rows, None)
        self.others[table].update((START + time * MINUTE, k, v) for time, k, v in rows)

    def commit(self, table: str, rows: list[Row], bound: str | None) -> None:
        said = {} if bound is None else {BOUND: bound, STRICT: str(bound == END).lower()}
        named = [{"rowtime": EPOCH + timedelta(microseconds=START + t * MINUTE), "k": k, "v": v} for t, k, v in rows]
        schema = SCHEMA if table == ORDERS else _nullable(SCHEMA)
        self.tables.append(table, pa.Table.from_pylist(named, schema), said)

    def step(self) -> None:
        if not self.is_running:
            self.start()
        for query in self.queries:
            query.step()
        self.require_prompt()

    def start(self) -> None:
        for query in self.queries:
            query.__enter__()
        self.is_running = True

    def stop(self) -> None:
        for query in self.queries:
            query.__exit__()
        self.is_running = False

    def restart(self, query: Observed, crashed: bool) -> None:
        if self.is_running:
            self.step()
            query.__exit__()
            if crashed and any((query.checkpoint / "offsets").glob("[0-9]*")):
                query.lose_commit()
            query.__enter__()

    def rows(self, table: str) -> Rows:
        """The rows of a table; none if it was never written."""
        if not self.tables.is_there(table):
            return Counter()
        found = self.tables.rows(table)
        times = found.column("rowtime").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        return Counter(zip(times.to_pylist(), *(found.column(name).to_pylist() for name in COLUMNS[1:]), strict=True))

    def in_time(self, table: str) -> Rows:
        """The rows of a table without those that its query has taken for late, of which all are of others."""
        late, rows = self.rows(f"late_{table}"), self.rows(table)
        wrong = late - self.others[table]
        assert not wrong, f"late rows of {table} that were in time, or are kept twice: {wrong}"
        return rows - late

    def results(self) -> tuple[Rows, Rows]:
        """What the two queries have written."""
        return self.rows(MIDDLE) - self.others[MIDDLE], self.queries[1].rows

    def batch(self, query: Query, rows: Rows) -> Rows:
        """The result of a query over these rows."""
        named = [dict(zip(COLUMNS, row, strict=True)) for row in rows.elements()]
        table = pa.Table.from_pylist(named, _numbers(SCHEMA)).cast(_nullable(SCHEMA))
        frame = self.batches.createDataFrame(table)
        found = query.frame(lambda _: frame).selectExpr("unix_micros(rowtime)", "k", "v").collect()
        return Counter(tuple(row) for row in found)

    def require_whole(self) -> None:
        """The results are those of the rows in batch, each row of a query is at or above the bounds before it."""
        for query, table, result in zip(self.program.queries, (ORDERS, MIDDLE), self.results(), strict=True):
            expected = self.batch(query, self.in_time(table))
            assert result == expected, f"{table}: missing {expected - result}, too many {result - expected}"
        require_lawful(self.tables.commits(MIDDLE, "rowtime"))

    def require_prompt(self) -> None:
        """What no row at or above the bound can change is out, once the commit with the bound is read."""
        for query, table, result in zip(self.program.queries, (ORDERS, MIDDLE), self.results(), strict=True):
            floors = [commit.floor for commit in self.tables.commits(table, "rowtime") if commit.floor is not None]
            if floors:
                rows = self.in_time(table)
                final = self.batch(query, rows) & self.batch(query, rows + probes(rows, floors[-1]))
                assert not final - result, f"{table}: {final - result} are not out at {show_micros(floors[-1])}"


def probes(rows: Rows, floor: int) -> Rows:
    """Rows that may still come: at the bound, and at each time of a row above it."""
    times = {floor, *(time for time, _, _ in rows if time >= floor)} if floor < micros("2020-01-01 00:00") else set()
    return Counter((time, k, v) for time in times for k in KEYS for v in (1, 2))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _numbers(schema: pa.Schema) -> pa.Schema:
    return _nullable(schema.set(0, pa.field("rowtime", pa.int64())))

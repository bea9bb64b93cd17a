"""Output: the rows of a Spark write, fitted to the stream, judged by its bound, and committed as a whole."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from spark_rowtime.bounds.bound import stronger
from spark_rowtime.bounds.disorder import AnyOrder, Disorder, declared
from spark_rowtime.bounds.origin import PRODUCER, STREAM, BoundOrigin, origin_values
from spark_rowtime.bounds.train import Timed
from spark_rowtime.errors import (
    DataLostError,
    DisorderedOutputError,
    InvalidOptionError,
    LateRowError,
    SchemaMismatchError,
    StreamNotFoundError,
)
from spark_rowtime.spark.directory_mark import DirectoryMark
from spark_rowtime.spark.options import Options
from spark_rowtime.spark.other_queries import is_query, way_out
from spark_rowtime.store import open_carried, open_kept_store
from spark_rowtime.store.admission import whose_bound
from spark_rowtime.store.base import Store
from spark_rowtime.store.commits import Commit, Rejected, Staged
from spark_rowtime.store.limits import admit
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.ddl import from_spark_json
from spark_rowtime.types.schema import ROWTIME, batch_to_schema, fitting_schema, stream_schema
from spark_rowtime.types.timestamps import show_micros


class Output:
    """What the options ``rowtime``, ``lateness`` and ``onDisorder`` say of the rows of a write. Can be pickled."""

    def __init__(self, options: Options, schema: StructType, *, creates: bool) -> None:
        """``creates``: the write may create the stream; otherwise it must exist."""
        self.path, self.column = options.written_path, options.get("rowtime") or ROWTIME
        self._directory = DirectoryMark.of(self.path)
        self._all_or_nothing = options.choice("onDisorder", "fail", "reject") == "fail"
        wanted = self._wanted(from_spark_json(schema.jsonValue()))
        self.schema, self._objects = _schema_and_objects(self.path, wanted, creates)
        self._lateness = options.lateness(self.schema.names)
        self.disorder()  # refuses unsupported options before the query starts

    def disorder(self) -> Disorder:
        """Returns the disorder that the options declare, without state."""
        return declared(self.schema, rowsImplyBounds=self._lateness is not None, lateness=self._lateness)

    def fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the rows with the columns of the stream."""
        if self.column != ROWTIME:
            batch = batch.append_column(ROWTIME, batch.column(self.column))
        return batch_to_schema(batch, self.schema)

    def staged_without_store(self, batches: Iterator[pa.RecordBatch]) -> tuple[str, list[Staged]]:
        """Stages each batch as one train without the store, as no task talks to a database.

        Large trains go to the location of the stream, if it has one; the bytes of others travel with what is returned.
        Returns the id of the stream whose location that is, or an empty text, and the trains.
        """
        with open_carried(self.path, self.schema, self._objects) as trains:
            staged = [trains.stage(self.fit(rows)) for rows in batches if rows.num_rows]
        return "" if self._objects is None else self._objects.stream, staged

    def require_directory(self) -> None:
        """Called in a task that opens the stream. Raises StoreUnavailableError on a machine other than the driver's."""
        if self._directory is not None:
            self._directory.require_same()

    @contextmanager
    def opened(self, store: Store) -> Iterator[Store]:
        """Sets ``schema`` to that of the opened stream, and closes ``store`` at the end of the block."""
        with store:
            self.schema = fitting_schema(store.schema, self.schema, self.path)
            yield store

    def commit(
        self,
        store: Store,
        info: ProducerInfo,
        staged: list[Staged],
        floor: int | None,
        checkpoint: str | None,
        status: str | None = None,
    ) -> None:
        """Commits the staged rows of a batch as ``info``'s next commit, with the ``floor`` that they are followed by.

        ``status``: what the query tells about the batch.

        Raises DisorderedOutputError, and commits nothing, if a row is below a bound and ``onDisorder`` is fail.
        """
        disorder = self.disorder()
        disorder.restore(info.disorder)
        trains, late, implied = one_step(store, staged, disorder, BoundOrigin(PRODUCER, info.name))
        in_force = stronger(info.floor, store.head().floor)
        accepted, disordered = admit(store, trains, in_force, partial(whose_bound, store, info.name))
        if disordered and self._all_or_nothing:
            rows, worst = sum(r.rows.num_rows for r in disordered), disordered[0]
            raise _disordered(self.path, rows, worst.bound, worst.origin)
        floor, rejected = stronger(stronger(info.floor, floor), implied), (*late, *disordered)
        number, state = info.number + 1, disorder.state()
        commit = Commit(
            info.name,
            info.epoch,
            number,
            accepted,
            floor,
            rejected,
            checkpoint,
            state,
            self._all_or_nothing,
            session=info.session,
            query_status=None if status is None else json.dumps({**json.loads(status), "column": self.column}),
        )
        try:
            store.commit(commit)
        except LateRowError as error:  # the stream's bound has passed these rows since
            values = error.values
            origin = BoundOrigin(values["boundOf"] or STREAM, values["boundBy"], values["boundEvent"])
            raise _disordered(self.path, values["rows"], values["bound"], origin) from error

    def _wanted(self, output: pa.Schema) -> pa.Schema:
        if self.column not in output.names:
            raise SchemaMismatchError(
                f"The output has no column {self.column!r}, only {output.names}. Name the event time of a result, "
                "for example .select(col('window.end').alias('rowtime'), ...), or set option('rowtime', <column>).",
                columns=output.names,
            )
        if self.column == ROWTIME:
            return stream_schema(output)
        if ROWTIME in output.names:
            raise InvalidOptionError(f"rowtime={self.column!r} would be a second column 'rowtime' of the output.")
        return stream_schema(output.append(pa.field(ROWTIME, output.field(self.column).type)))


def one_step(
    store: Store, trains: list[Staged], disorder: Disorder, origin: BoundOrigin
) -> tuple[list[Staged], tuple[Rejected, ...], int | None]:
    """Applies ``lateness`` to a batch, which is one step of it.

    Returns the trains that are in time, the late rows, and the floor that the rows imply. ``origin`` is recorded with
    the late rows. The trains are read one by one, so memory holds the rows of one train at a time, and the late rows.
    """
    if not trains or isinstance(disorder, AnyOrder):
        return trains, (), None
    fit: list[Staged] = []
    late: list[Rejected] = []
    implied, after = None, deepcopy(disorder)
    for train in trains:
        fitting, rejected, floor = _judged(store, train, disorder, after, origin)
        fit, late, implied = fit + fitting, late + rejected, stronger(implied, floor)
    disorder.restore(after.state())
    return fit, tuple(late), implied


def _judged(
    store: Store, train: Staged, before: Disorder, after: Disorder, origin: BoundOrigin
) -> tuple[list[Staged], list[Rejected], int | None]:
    """Judges one train by the state ``before`` the step. Adds the rows that are in time to the state ``after`` it."""
    rows = Timed(store.read(train))
    verdict = before.judge(rows, None)
    if verdict.fits is None:
        after.take(rows.rows)
        return [train], [], verdict.floor
    late = Rejected("late", pc.max(verdict.bounds).as_py(), rows.rows.filter(pc.invert(verdict.fits)), origin)
    fitting = rows.where(verdict.fits)
    if fitting is None:
        return [], [late], verdict.floor
    after.take(fitting.rows)
    return [store.stage(fitting.rows, fitting.ends)], [late], verdict.floor


def _disordered(path: str, rows: int, bound: int | None, origin: BoundOrigin | None) -> DisorderedOutputError:
    lie = "1 row of this batch is" if rows == 1 else f"{rows} rows of this batch are"
    return DisorderedOutputError(
        f"{lie} below {show_micros(bound)}, which {_whose(origin)} has already promised on {path}. "
        f"{way_out(origin)}, or set option('onDisorder', 'reject') to have such rows recorded as rejected.",
        path=path,
        bound=bound,
        **origin_values(origin),
    )


def _whose(origin: BoundOrigin | None) -> str:
    """Who has promised a bound of that origin."""
    if origin is None or origin.producer is None:
        return "the stream"
    if origin.owner == PRODUCER:
        return f"its own producer ({origin.producer!r})"
    return f"another {'query' if is_query(origin.producer) else 'producer'} ({origin.producer!r})"


def replaced(path: str) -> DataLostError:
    """Returns the error for a stream that is another one than that in which the tasks have staged their rows."""
    return DataLostError(
        f"The stream at {path} was deleted and created again while a batch was written; nothing of the batch was "
        "committed. Restore the stream, or start the query with a new checkpoint.",
        path=path,
    )


def _schema_and_objects(path: str, wanted: pa.Schema, creates: bool) -> tuple[pa.Schema, Any]:
    """Returns the schema of the stream at ``path``, and the store's ``objects``.

    The schema is ``wanted`` if there is no stream yet that the write creates.
    """
    try:
        store = open_kept_store(path)
    except StreamNotFoundError:
        if creates:
            return wanted, None
        raise
    with store:
        return fitting_schema(store.schema, wanted, path), store.objects

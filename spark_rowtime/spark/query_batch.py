"""Batch: identifies a batch of a query, and distinguishes a retried batch from one that must not be written."""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from spark_rowtime.errors import DataLostError, InvalidOptionError, ProducerFencedError
from spark_rowtime.spark.output_bound import SPARK_QUERY_ID, of_this_query
from spark_rowtime.store.query_status import QUERY_PRODUCER
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.types.json_values import load
from spark_rowtime.types.short_repr import short_repr

_END = "rowtime.batchEnd"
"""The local property in which the extension stores the offsets, which are the same when the batch runs again."""
_POSITION = {"stream", "seq"}
"""Keys of a position in the rows of a stream, among the offsets of any sources."""
REMEMBERED_RUNS = 16
"""How many runs of a query are remembered. A still older run that is alive is fenced by its batch number alone."""
ID_CHARACTERS = 12
"""How many characters of a run's id, and of a hash, are stored: enough to distinguish a few of them."""


@dataclass(frozen=True)
class Batch:
    """One batch of one run of a query.

    ``offsets`` is a hash of the source offsets at which the batch ends, and ``reads`` are the streams whose rows the
    query reads; empty without the extension.

    Law (*in turn*): a query's batches land in their order, each once, from one run at a time. The producer's
    checkpoint, which is stored with the rows, records what has landed: the last batch, its offsets, and the runs.
    """

    query: str
    run: str
    number: int
    offsets: str
    reads: tuple[str, ...] = ()

    @classmethod
    def said_by(cls, read_property: Callable[[str], str | None]) -> Self:
        """Reads the local properties that Spark and the extension set for each batch; ``read_property`` returns one."""
        query, run, batch = (
            read_property(name) or "" for name in (SPARK_QUERY_ID, "spark.jobGroup.id", "streaming.sql.batchId")
        )
        end = of_this_query(_END, read_property) or ""
        return cls(query, run, int(batch), hash_of_end(read_property), tuple(_streams(end)))

    @property
    def producer(self) -> str:
        """The name of the producer under which the query's sink writes."""
        return f"{QUERY_PRODUCER}{self.query}"

    def require_other_input(self, stream: str, path: str) -> None:
        """Raises InvalidOptionError if the query reads the ``stream`` that it writes."""
        if stream in self.reads:
            raise InvalidOptionError(
                f"This query reads the stream that it writes, {path}: each of its results would be an input of the "
                "next batch, without end. Nothing was written. Write the results to another stream.",
                path=path,
            )

    def landed(self, info: ProducerInfo, path: str) -> bool:
        """Returns whether the stream has this batch already.

        Raises ProducerFencedError or DataLostError if it is not the turn of this batch.
        """
        last, stored = info.number - 1, _stored(info)
        if self.run[:ID_CHARACTERS] in _runs(stored)[:-1]:
            raise self._copied(path, f"another run of the query has written batch {last}")
        if self.number > last + 1:
            raise self._lost(path, last)
        if self.number < last:
            raise self._copied(path, f"batch {last} has been written")
        ends = {self.offsets, stored.get("offsets", "")} - {""}
        if self.number == last and len(ends) > 1:
            raise self._copied(path, "that batch has been written from another part of the source")
        return self.number == last

    def checkpoint(self, info: ProducerInfo) -> str:
        """Returns the producer's checkpoint that is stored when this batch lands."""
        runs = _runs(_stored(info))
        run = self.run[:ID_CHARACTERS]
        others = [other for other in runs if other != run]
        return json.dumps(
            {"batch": self.number, "offsets": self.offsets, "runs": [*others[1 - REMEMBERED_RUNS :], run]}
        )

    def _copied(self, path: str, what: str) -> ProducerFencedError:
        return ProducerFencedError(
            f"Batch {self.number} of query {self.query} cannot be written to {path}: {what}. Another process runs "
            "this query, or its checkpoint was copied, or is an older copy. Nothing of the batch was committed. "
            "Continue with the newest checkpoint, in one process; a copy needs a query and a stream of its own.",
            path=path,
            query=self.query,
            batch=self.number,
        )

    def _lost(self, path: str, last: int) -> DataLostError:
        has = f"only batches up to {last}" if last >= 0 else "no batch"
        return DataLostError(
            f"Batch {self.number} of query {self.query} cannot be written to {path}: the stream has {has} of "
            "this query, so later batches are lost. The stream was deleted and created again, or is an older copy, "
            "or the path has changed. Restore the stream, or start the query with a new checkpoint.",
            path=path,
            query=self.query,
            batch=self.number,
        )


def hash_of_end(read_property: Callable[[str], str | None]) -> str:
    """A hash of the source offsets at which the running batch ends; empty without the extension."""
    end = of_this_query(_END, read_property)
    return short_hash(end) if end else ""


def short_hash(text: str) -> str:
    """A hash that tells where one batch of a query ends from where another does."""
    return hashlib.sha256(text.encode()).hexdigest()[:ID_CHARACTERS]


def _streams(ends: str) -> Iterator[str]:
    """The streams in the end offsets of a batch, which are lines of JSON, or of anything for sources of others."""
    for line in ends.splitlines():
        if line.startswith("{") and '"seq"' in line:
            offset = load(line)
            if offset.keys() >= _POSITION:
                yield offset["stream"]


def _stored(info: ProducerInfo) -> dict[str, Any]:
    """What the producer's checkpoint records. Raises InvalidOptionError if no query has written it."""
    with suppress(ValueError):
        found = load(info.checkpoint or "{}")
        if isinstance(found, dict) and isinstance(found.get("runs", []), list):
            return found
    raise InvalidOptionError(
        f"The checkpoint of producer {info.name!r}, {short_repr(info.checkpoint)}, is not one of a query: another "
        "program has sent under this name. Write the results to another stream.",
        producer=info.name,
    )


def _runs(stored: dict[str, Any]) -> list[Any]:
    return list(stored.get("runs", []))

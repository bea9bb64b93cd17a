"""The questions of the extension to a source, and what Spark asks by itself where there is no extension.

The extension asks by ``partitions(start, end)``, which has one form in all versions of Spark and can be called at any
time. ``start`` is the offset that the question is about. In the place of ``end`` is the question, an object of JSON:
``ask`` is its name, the other keys are its arguments. In the place of a partition is the answer, a text of JSON. So no
question and no answer is ever in a log of Spark.
"""

import inspect
import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from spark_rowtime.errors import InvalidOptionError, ShimMissingError
from spark_rowtime.spark.event_wait import EventWait
from spark_rowtime.spark.versioned_pickle import VersionedPickle
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1 have none of them, and do not call what uses them

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Marks a source for later versions of Spark."""


ASK = "ask"
"""The key that makes the end offset of ``partitions`` a question. No logged offset has it."""

PARTITIONS = "partitions"
"""The only question whose answer is Spark's own partitions."""

Offset = dict[str, Any]


class AskedReader(VersionedPickle, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming source that the extension asks. What Spark calls by itself is here; a subclass answers.

    Law: with the extension, Spark itself calls ``initialOffset``, ``commit``, ``read`` and ``stop`` alone. So any other
    call of Spark shows that the session has no extension.
    """

    _path: str
    _at: Offset | None = None
    _event_wait: EventWait | None = None

    @cached_property
    def _store(self) -> Store:
        return open_store(self._path)

    def stop(self) -> None:
        """Called once, when the query ends."""
        if self._event_wait is not None:
            self._event_wait.close()
        if "_store" in self.__dict__:
            self._store.close()

    @property
    @abstractmethod
    def answers(self) -> Mapping[str, Callable[..., Any]]:
        """The questions that this source answers. Each is called with the start offset and the question's arguments."""

    @abstractmethod
    def next(self, start: Offset, *, unlimited: bool) -> Offset:
        """Returns the end of the next batch, ``start`` itself if there is nothing new. Asked at each trigger.

        ``unlimited`` leaves out the limits of the options.
        """

    @abstractmethod
    def latest(self) -> Offset:
        """Returns the latest offset of the stream, for the query's progress, maybe with ``metrics``.

        Asked at each trigger, also at an idle one.
        """

    @abstractmethod
    def between(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Returns what Python workers read of a batch, also of one that is run again after a restart."""

    def register(self, reader: str, start: Offset) -> None:
        """Registers the query, which goes on after ``start``; ``reader`` is the checkpoint folder of this source."""

    @abstractmethod
    def prepareForTriggerAvailableNow(self) -> None:
        """Called or asked for Trigger.AvailableNow: the query reads exactly what is there now."""

    @abstractmethod
    def require_no_extension(self) -> None:
        """Raises ShimMissingError if the source must not be read without the extension."""

    @property
    @abstractmethod
    def limits(self) -> str | None:
        """The option that limits a batch, if one is given."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Answers the extension, or, without it, tells Spark what a batch reads."""
        if ASK in end:
            return self._answered(start, **end)
        self.require_no_extension()
        self._at = end
        return self.between(start, end)

    def _answered(self, start: Offset, *, ask: str, **arguments: Any) -> Sequence[InputPartition]:
        if ask == PARTITIONS:
            return self._between_for(start, **arguments)
        answered = self.answers.get(ask)
        if answered is None or not _takes(answered, arguments):
            raise ShimMissingError(
                f"The extension in this Spark session asks {ask!r} with {', '.join(sorted(arguments)) or 'nothing'}, "
                "which this version of spark-rowtime does not know: its jar is of another version. Set spark.jars to "
                "what `rowtime jar` prints."
            )
        answer = json.dumps(answered(start, **arguments))
        return [cast("InputPartition", answer)]

    def _between_for(self, start: Offset, *, end: Offset, reader: str) -> Sequence[InputPartition]:
        self.register(reader, start)
        return self.between(start, end)

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:
        """Called at each trigger without the extension. Spark 4.0 and 4.1 say neither the start nor the limit.

        Where these go on from a checkpoint, the start is not known, and it is taken for that of a query that has read
        all; ``between`` refuses an end that does not go on from the true start.
        """
        self.require_no_extension()
        if start is None:
            self._require_unlimited()
        at = start or self._at or self.latest()
        self._at = self.next(at, unlimited=limit is None or isinstance(limit, ReadAllAvailable))
        return self._at

    def _require_unlimited(self) -> None:
        if self.limits is not None:
            raise InvalidOptionError(
                f"{self.limits} needs Spark 4.2 or later where the extension does not read the stream: this Spark asks "
                "a source in Python for all that is there. Leave the option out, or build the session with "
                "spark_rowtime.configure(SparkSession.builder), and leave the option bounds out, too.",
                option=self.limits,
            )

    def getDefaultReadLimit(self) -> Any:
        """Called by Spark 4.2 and later without the extension. The options have the limits, so any limit will do."""
        return ReadAllAvailable() if self.limits is None else ReadMaxRows(1)

    def reportLatestOffset(self) -> Offset:
        """Called by Spark 4.2 and later without the extension, at each trigger."""
        return self.latest()


def _takes(answered: Callable[..., Any], arguments: Mapping[str, Any]) -> bool:
    """Whether a question may have these arguments."""
    try:
        inspect.signature(answered).bind({}, **arguments)
    except TypeError:
        return False
    return True

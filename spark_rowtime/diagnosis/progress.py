"""Progress: how far what was flushed into one stream has come on its way to another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_rowtime.bounds.bound import is_end
from spark_rowtime.diagnosis.reach import Reach
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.errors import DataLostError, InvalidOptionError, RowtimeError
from spark_rowtime.store import open_store
from spark_rowtime.store.query_status import QuerySource, QueryStatus
from spark_rowtime.store.token import FlushMark
from spark_rowtime.types.timestamps import END

_ROUNDING_MICROS = 1000
"""A bound of the output that lies less than this above the input's is not a shifted time."""


@dataclass(frozen=True)
class Pending:
    """A query that has not output everything yet: its status, and the stream ``path`` that it writes.

    ``needs``: the time that this stream must reach, in microseconds; None if only the query's position is behind.
    """

    query: QueryStatus | None
    path: str
    needs: int | None


@dataclass
class Progress:
    """Follows one token. What has once been reached stays reached, whatever is sent later.

    Law (*copies*): a copy that was made before the token has nothing of it, and never will: DataLostError.

    ``marks``: for each stream that has the results, by its path, up to where they lie. ``pending``: the query that the
    last look found to be waited for.
    """

    token: FlushMark
    reach: Reach
    marks: dict[str, FlushMark] = field(default_factory=dict)
    pending: Pending | None = None

    def has_reached(self, path: str) -> bool:
        """Looks whether all results are in the stream at ``path``."""
        self.pending = None
        return self._mark(path, ()) is not None

    def _mark(self, path: str, above: tuple[str, ...]) -> FlushMark | None:
        """Up to where the stream has the results; None if it does not have all of them, or none come to it."""
        if path in self.marks:
            return self.marks[path]
        with open_store(path) as store:
            stream, ancestors = StreamState.of(store.snapshot(), path), store.ancestors
        last = self._last_of_token(stream, ancestors)
        if last is None:
            mark = self._through_queries(stream, above)
        elif self.token.seq <= last:
            mark = self.token
        elif stream.stream == self.token.stream:  # this place has not come as far yet
            mark = None
        else:
            raise _left_out(path, self.token, last)
        if mark is not None:
            self.marks[path] = mark
        return mark

    def _through_queries(self, stream: StreamState, above: tuple[str, ...]) -> FlushMark | None:
        """Every query that leads from the token's stream to this one must have output everything."""
        found: list[FlushMark | None] = []
        for status in stream.queries:
            for source in status.sources:
                path = self._reached(source)
                if path is None or path in above or not self._leads(path, above):
                    continue
                mark = self._mark(path, (*above, path))
                found.append(None if mark is None else self._output(status, source, mark, stream))
        if not found and self.pending is None:
            self.pending = Pending(None, stream.path, None)
        times = [mark.largest for mark in found if mark is not None and mark.largest is not None]
        whole = found and all(found)
        return FlushMark(stream.stream, stream.seq, max(times, default=None)) if whole else None

    def _leads(self, path: str, above: tuple[str, ...]) -> bool:
        """Whether the stream at ``path`` has the token, or is written by a query that such a stream leads to."""
        left, seen = [path], {*above}
        while left:
            if (here := left.pop()) in seen:
                continue
            seen.add(here)
            try:
                with open_store(here) as store:
                    stream, ancestors = StreamState.of(store.snapshot()), store.ancestors
            except RowtimeError:
                continue
            if self._last_of_token(stream, ancestors) is not None:
                return True
            sources = [self._reached(source) for status in stream.queries for source in status.sources]
            left += [source for source in sources if source is not None]
        return False

    def _last_of_token(self, stream: StreamState, ancestors: Mapping[str, int]) -> int | None:
        """The last event that a stream has of the one that the token is of; None if it is no copy of that."""
        return stream.seq if stream.stream == self.token.stream else ancestors.get(self.token.stream)

    def _reached(self, source: QuerySource) -> str | None:
        """The path at which a source is opened; None if it is no stream, or beyond ``reach``."""
        return None if source.path is None else self.reach.path_of(source.path)

    def _output(
        self, status: QueryStatus, source: QuerySource, mark: FlushMark, stream: StreamState
    ) -> FlushMark | None:
        """What the query has made of the results up to ``mark``; None if it has not output all of it."""
        ended = is_end(source.floor)
        time = mark.largest
        read = source.seq >= mark.seq and (source.cut is None or time is None or source.cut > time)
        if not (read or ended):
            self.pending = Pending(status, stream.path, None)
            return None
        if time is None:
            return FlushMark(stream.stream, stream.seq, None)
        out = _time_of_output(status, time)
        if not ended and not _is_complete(status, time):
            self.pending = Pending(status, stream.path, out)
            return None
        return FlushMark(stream.stream, stream.seq, out + _shift(status, source))


def _left_out(path: str, token: FlushMark, last: int) -> DataLostError:
    return DataLostError(
        f"What was flushed up to event {token.seq} will not come: the stream at {path} is a copy that has its "
        f"events up to {last}. Send it again, or bring the newer stream back.",
        path=path,
        asked=token.seq,
        last=last,
    )


def _is_complete(status: QueryStatus, time: int) -> bool:
    """Whether the operators have output all results of the rows up to ``time``."""
    for operator in reversed(status.operators):  # those that come first are the last in the status
        if operator.emits == "at once":
            continue
        if operator.watermark is None:
            return False
        end = operator.window_end(time)
        if end is not None:
            if operator.watermark < end:
                return False
            time = end
        elif operator.done is None or operator.emits == "unknown":
            raise InvalidOptionError(
                f"It cannot be told when query {status.shown!r} has output what it has read: nothing says how long "
                f"its operator {operator.name} keeps a row. Wait for a stream before this query, or for its bound "
                "(rowtime why --at).",
                option="path",
                query=status.query,
                operator=operator.name,
            )
        elif operator.done < time:
            return False
    return True


def _time_of_output(status: QueryStatus, time: int) -> int:
    """The largest time that a result of a row at ``time`` can have, apart from shifts."""
    for operator in reversed(status.operators):
        time = operator.window_end(time) or time
    return time


def _shift(status: QueryStatus, source: QuerySource) -> int:
    """By how much the query moves times forward, as far as its bounds tell."""
    out = status.output.get(status.column or "rowtime")
    ahead = 0 if out is None or source.floor is None or out >= END else out - source.floor
    return ahead if ahead >= _ROUNDING_MICROS else 0

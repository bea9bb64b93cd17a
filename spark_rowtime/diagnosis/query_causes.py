"""The causes that lie in a query between two streams."""

from dataclasses import dataclass

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.bounds.unreached_cuts import Unreached, UnreachedCuts
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.store.base import Store
from spark_rowtime.store.query_status import FAILED, STOPPED, QueryOperator, QuerySource, QueryStatus
from spark_rowtime.types.short_repr import shell_arguments
from spark_rowtime.types.timestamps import END, LEAST, SECOND_MICROS, show_micros, to_interval

JOIN = "symmetricHashJoin"
"""What Spark calls a join of streams."""


@dataclass(frozen=True)
class QueryState:
    """A query, as its status tells of it, and the source for which it waits.

    ``floor`` is the bound of its output, in microseconds, and ``needs`` the time that it must reach. ``running`` is
    its status in the source, which says whether it runs. ``source`` is the one that it waits for.
    ``cut``: of a source beside topics, the producer whose bound does not count yet, and what the query has not read.
    ``behind``: by how much the joins above the source hold its bound back.
    """

    status: QueryStatus
    floor: int | None
    needs: int
    source: QuerySource
    stream: StreamState
    running: QueryStatus | None
    cut: Unreached | None = None
    behind: int = 0

    @property
    def shift(self) -> int:
        """By how much the output of the last batch lies behind its input, in microseconds.

        It is 0 if one of the two has no bound: where the output's is lost, ``floor`` is that of an earlier batch. Of
        several sources a slow one can lie behind the output, which says nothing about how times are moved. Nor does an
        output that follows other times.
        """
        read, out = self.source.floor, self.status.output_floor
        if out is None or read is None or self.status.follows:
            return 0
        behind = max(self._marks) - _whole(out) if self._marks else read - out
        return behind if len(self.status.sources) == 1 else max(behind, self.behind)

    @property
    def _waiting(self) -> list[QueryOperator]:
        """The operators whose rows come out when a window, a session or a raw time is complete.

        The output of a join follows the rows that it keeps, to the microsecond.
        """
        found = [o for o in self.status.operators if o.window is not None or o.done is not None]
        return [] if any(o.name == JOIN for o in found) else found

    @property
    def _marks(self) -> list[int]:
        """Their watermarks, which are whole milliseconds."""
        return [o.watermark for o in self._waiting if o.watermark is not None]

    @property
    def hold(self) -> int:
        """The option ``hold`` of the source."""
        return to_interval(self.source.hold, "hold") or 0

    @property
    def has_read_all(self) -> bool:
        """Whether the query has come as far as its source lets it."""
        there, read = self.stream.floor, self.source.floor
        return there is None or (read is not None and read >= there - self.hold)

    @property
    def source_needs(self) -> int:
        """The time that the source must reach, as far as the last batch tells.

        Where the query has not read all, the least time counts that can be enough: it may round times. Where operators
        wait for a watermark, it is the next whole millisecond. A row at the watermark may still change a session,
        or a group by a raw time, or match a row that a join keeps, so for these the bound must be strict.
        """
        shift = self.shift if self.shift < 0 or self.has_read_all else 0
        if self.behind and self.needs < END:
            return max(-_whole(-self.needs) + _whole(shift) + 1, LEAST)
        if not self._marks or self.needs >= END:
            return max(self.needs + shift, LEAST)
        return max(-_whole(-self.needs) + shift + (0 if all(o.window for o in self._waiting) else 1), LEAST)

    @property
    def is_to_blame(self) -> bool:
        """Whether the source has come far enough, but the output has not."""
        below = self.floor is None or self.floor < self.needs
        return below and self.stream.floor is not None and self.stream.floor >= self.source_needs


def _whole(micros: int) -> int:
    """The last whole millisecond."""
    return micros // 1000 * 1000


def holding(status: QueryStatus, sources: list[QuerySource]) -> tuple[QuerySource, int]:
    """The source for which a query waits, and by how much joins hold its bound back.

    It is the one with the weakest bound. Where an operator above a join waits, or a join keeps rows back, it is the one
    whose bound, less what the joins take off, is least: these wait for the rows that the join keeps.
    """
    weakest = min(sources, key=lambda each: _reached(each, 0))
    names = [operator.name for operator in status.operators if operator.emits == "complete"]
    output, read = status.output_floor, weakest.floor
    if names[:1] != [JOIN] or (output is not None and read is not None and output < read):
        weakest = min(sources, key=lambda each: _reached(each, each.behind))
        return weakest, weakest.behind
    return weakest, 0


def _reached(source: QuerySource, behind: int) -> tuple[bool, int]:
    """The time of a source less ``behind``, to compare; one without a bound is the weakest."""
    return (False, 0) if source.floor is None else (True, source.floor - behind)


def unreached_by(store: Store, source: QuerySource) -> Unreached | None:
    """Which cut of the bounds that the query has seen its topics have not reached; None if that is none."""
    if source.read is None:
        return None
    cuts = UnreachedCuts()
    for logged in store.cuts(0, source.seq):
        cuts.add(logged)
    return cuts.weakest(source.seq, source.read)


def finding_of_query(query: QueryState) -> Finding | None:
    """Why the output of the query stands below ``needs``, although its source has come far enough; None if it has not.

    The remedies name the query by its name or id.
    """
    if not query.is_to_blame:
        return None
    return _not_running(query) or (_lagging(query) if not query.has_read_all else _held_within(query))


def _not_running(query: QueryState) -> Finding | None:
    running, name = query.running, query.status.shown
    again = f"Start query {name} again with its checkpoint; it continues where it stopped."
    if running is None or (query.has_read_all and running.state != FAILED):
        return None
    if running.state == FAILED:
        remedy = f"Correct what it failed with. {again}"
        return Finding(Cause.QUERY_FAILED, name, f"Query {name!r} has failed: {running.error}", remedy)
    if running.state == STOPPED:
        return Finding(Cause.QUERY_STOPPED, name, f"Query {name!r} was stopped, or has ended.", again)
    if running.gone:
        seconds = running.unseen // SECOND_MICROS
        note = f"The process of query {name!r} is gone: it has not reported for {seconds} s."
        return Finding(Cause.QUERY_GONE, name, note, again)
    return None


def _lagging(query: QueryState) -> Finding:
    """The query runs, and has not read all."""
    source, name, there = query.source, query.status.shown, query.stream.floor
    if query.cut is not None:
        return _behind_cut(query, query.cut)
    read = f"{query.stream.path} up to {_at(source.floor)}; the stream is at {show_micros(there)}"
    if source.limits and source.seq < query.stream.seq:
        limits = ", ".join(f"{option}={value}" for option, value in source.limits.items())
        note = f"Query {name!r} has read {read}. It reads no more in a batch than {limits}."
        return Finding(Cause.LIMIT, name, note, "Raise the limit, trigger more often, or wait until it has caught up.")
    note = f"Query {name!r} runs, but has read {read}."
    remedy = f"Wait for the batch that query {name} runs; if batches take long, look at its progress and its cores."
    return Finding(Cause.QUERY_BEHIND, name, note, remedy)


def _behind_cut(query: QueryState, behind: Unreached) -> Finding:
    """The bounds are beside topics, and the query has not read these as far as the cut of the next bound."""
    name, read = query.status.shown, TopicCut(query.source.read or {}).within(behind.cut)
    note = (
        f"Query {name!r} has not read what the next bound of producer {behind.producer!r} in {query.stream.path} "
        f"follows: the messages up to {behind.cut}. It has read {read}."
    )
    remedy = (
        "Wait until the query has read so far. With kafka.isolation.level=read_committed, messages behind an open "
        "transaction are read when it ends; kafka-transactions.sh find-hanging names one that does not. Where it has a "
        "limit, raise maxOffsetsPerTrigger."
    )
    return Finding(Cause.CUT, name, note, remedy)


def _held_within(query: QueryState) -> Finding:
    """The query has read all that its source lets it, and its output still stands below ``needs``."""
    within = (_held_by_option, _of_ordinary_source, _following_rows, _bound_lost)
    return next((found for found in (of(query) for of in within) if found), None) or _kept_by_operators(query)


def _held_by_option(query: QueryState) -> Finding | None:
    source, name = query.source, query.status.shown
    if not query.hold or (source.floor is not None and source.floor >= query.source_needs):
        return None
    needs = show_micros(min(query.source_needs + query.hold, END))
    waiting = f"rows wait from {_at(source.floor)} on"
    note = f"Query {name!r} reads {query.stream.path} with hold={source.hold!r}: {waiting}."
    return Finding(Cause.HOLD, name, note, f"{query.stream.path} must reach {needs}; or read with a smaller hold.")


def _of_ordinary_source(query: QueryState) -> Finding | None:
    name, others = query.status.shown, [other.other for other in query.status.sources if other.path is None]
    if not others:
        return None
    return Finding(
        Cause.ORDINARY_SOURCE,
        name,
        f"Query {name!r} also reads {others[0]}, which has no bounds, so its output has none.",
        "Read that source through a rowtime stream, or let the stream speak for it: option('punctuate', 'true').",
    )


def _following_rows(query: QueryState) -> Finding | None:
    name, column = query.status.shown, query.status.follows
    if not column or not query.status.operators:
        return None
    return Finding(
        Cause.OPERATOR,
        name,
        f"Query {name!r} has withWatermark on {column!r}, of which no bound speaks, so it goes by Spark's rules: its "
        f"output is at {_at(query.floor)}, and follows the largest {column} of its rows, whatever producers promise.",
        f"A row with a later {column}, or the end of the streams. To go by bounds, remove that withWatermark and group "
        f"or join by rowtime; or write the rows into a stream whose rowtime is {column}.",
    )


def _bound_lost(query: QueryState) -> Finding | None:
    name, column = query.status.shown, query.status.column or "rowtime"
    expression = query.status.lost.get(column)
    if not expression:
        return None
    if expression == "Join":
        return Finding(
            Cause.BOUND_LOST,
            name,
            f"The output of query {name!r} has no bound: it was lost at a join whose ON does not say how long the rows "
            "of both sides are kept, so later results can have any time.",
            "The ON of the join needs a condition on the times of both sides, such as b.rowtime BETWEEN a.rowtime AND "
            "a.rowtime + INTERVAL 10 MINUTES, or equal windows. Start that query with a new checkpoint.",
        )
    return Finding(
        Cause.BOUND_LOST,
        name,
        f"The output of query {name!r} has no bound: it was lost at {expression}",
        f"Write {column} as an expression that is known to keep the order of time, such as window.end, rowtime + "
        "INTERVAL 1 HOUR or date_trunc('HOUR', rowtime); or give the sink option('lateness', ...).",
    )


def _kept_by_operators(query: QueryState) -> Finding:
    status, name = query.status, query.status.shown
    kept = ", ".join(operator.name for operator in status.operators) or "none"
    note = f"Query {name!r} has read all, but its operators ({kept}) keep rows: its output is at {_at(query.floor)}."
    return Finding(Cause.OPERATOR, name, note, f"{query.stream.path} must come further; rows are kept until then.")


def waiting_for(query: QueryState) -> Finding | None:
    """Of a query that waits for a source: which side of a join, or input of a union, that is; None for one source."""
    ours = [source for source in query.status.sources if source.path is not None]
    others = [source for source in ours if source is not query.source]
    place = next((mine for other in others for mine in _different(query.source, other)), None)
    if place is None:
        return _behind_input(query)
    cause = Cause.JOIN_SIDE if place.endswith("JOIN") else Cause.UNION_INPUT
    name = query.status.shown
    note = (
        f"Query {name!r} waits for the {place}, {query.stream.path}, which it has read up to {_at(query.source.floor)}."
    )
    return Finding(cause, name, note, "")


def _behind_input(query: QueryState) -> Finding | None:
    read, name = query.source.floor, query.status.shown
    if read is None or read < query.needs:
        return None
    note = (
        f"The output of query {name!r} lies {query.shift / SECOND_MICROS:.0f} s behind its input: {_at(query.floor)} "
        f"where {query.stream.path} is at {_at(read)}."
    )
    return Finding(Cause.OPERATOR, name, note, "")


def _different(mine: QuerySource, other: QuerySource) -> list[str]:
    """The topmost join or union in which the two sources have different places, as the place of the first."""
    return [a for a, b in zip(mine.place, other.place, strict=False) if a != b][:1]


def _at(floor: int | None) -> str:
    return "no bound" if floor is None else show_micros(floor)


def closing(path: str, producer: str) -> str:
    """What to do about a query that will not run again under this name."""
    return f"If a new query has taken its place: rowtime close {shell_arguments(path, producer)}."

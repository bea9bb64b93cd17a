"""The answer of ``why``: what holds a stream, through which links, and what would release it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.diagnosis.causes import Cause


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One link of the chain from a feed to a stream: a producer, a stream, or a query; to a table also its drain.

    Attributes:
        kind: "producer", "stream" or "query"; of a table also "table" or "drain".
        name: The name of the producer, the path of the stream, or the name or id of the query.
        bound: The bound of the link; None if it has none. That of a query is the bound of its output.
        behindSeconds: How far the bound lies behind that of the link before it, in seconds of event time. For the
            first link, a producer, how far it lies behind the strongest producer of its stream. None if one of the
            two has no bound; 0 if it is not behind.
        lastMoved: When the link last moved, an aware datetime, UTC: a producer sent a row or a bound, or joined; the
            bound of a stream rose; a query committed a batch. None if this is not known.
        needs: The time that the link must reach before the stream is complete at the time asked for. It differs
            from that time where a query shifts times, or keeps rows.
        cause: Why the link stands below ``needs``, if that has a cause of its own; None otherwise.
        note: The same in words; empty without a cause.
    """

    kind: str
    name: str
    bound: RowtimeBound | None
    behindSeconds: float | None
    lastMoved: datetime | None
    needs: datetime | None = None
    cause: Cause | None = None
    note: str = ""

    def toJson(self) -> dict[str, Any]:
        """Returns the link as a JSON object; docs/cli.md has its keys."""
        return {
            "kind": self.kind,
            "name": self.name,
            "bound": _bound(self.bound),
            "behindSeconds": self.behindSeconds,
            "lastMoved": _time(self.lastMoved),
            "needs": _time(self.needs),
            "cause": None if self.cause is None else self.cause.value,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """What holds a stream; ``why`` returns it.

    Attributes:
        stream: The path of the stream.
        at: The time asked for, an aware datetime, UTC. None: there is nothing that the stream could reach.
        complete: Whether the stream is complete at ``at``: no later row is before it.
        bound: The bound of the stream; None if it has none.
        holder: The name of what holds the stream: a producer or a query; None if nobody does.
        cause: The cause, a Cause. ``Cause.COMPLETE`` if the stream is complete at ``at``.
        note: The cause in words.
        remedy: What would release the stream, with the commands; empty if it is complete.
        chain: The links from the feed that holds the stream to the stream, each a ChainLink.
        notFollowed: The streams that statuses of queries name, and to which the answer does not lead, since they are
            not where the stream is: what is behind them is unknown.

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-explanation", "rowtime TIMESTAMP NOT NULL", producers=["Berlin"])
        >>> found = rt.why("memory://docs-explanation", at="2026-01-05T10:00:00Z")
        >>> found.complete, found.cause.value, found.holder
        (False, 'expected', 'Berlin')
        >>> [link.kind for link in found.chain]
        ['producer', 'stream']
    """

    stream: str
    at: datetime | None
    complete: bool
    bound: RowtimeBound | None
    holder: str | None
    cause: Cause
    note: str
    remedy: str
    chain: tuple[ChainLink, ...]
    notFollowed: tuple[str, ...] = ()

    def toJson(self) -> dict[str, Any]:
        """Returns the explanation as a JSON object; docs/cli.md has its keys.

        Example:
            >>> import spark_rowtime as rt
            >>> rt.createStream("memory://docs-tojson", "rowtime TIMESTAMP NOT NULL")
            >>> rt.why("memory://docs-tojson", at="2026-01-05T10:00:00Z").toJson()["cause"]
            'noProducers'
        """
        return {
            "stream": self.stream,
            "at": _time(self.at),
            "complete": self.complete,
            "bound": _bound(self.bound),
            "holder": self.holder,
            "cause": self.cause.value,
            "note": self.note,
            "remedy": self.remedy,
            "chain": [link.toJson() for link in self.chain],
            "notFollowed": list(self.notFollowed),
        }


def _bound(bound: RowtimeBound | None) -> dict[str, Any] | None:
    """A bound as every command shows it in JSON."""
    return None if bound is None else {"time": _time(bound.time), "strict": bound.strict, "end": bound.isEnd}


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")

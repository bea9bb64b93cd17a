"""The causes for which a stream stands below a time: a closed list of codes."""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a stream is not complete at a time. The list is closed; docs/howto/no-output.md describes each."""

    COMPLETE = "complete"
    """The stream is complete at the time asked for."""
    NO_PRODUCERS = "noProducers"
    """No producer has ever been attached."""
    EXPECTED = "expected"
    """A producer that the stream expects has not come."""
    NOTHING_PROMISED = "nothingPromised"
    """A producer is attached, but has promised nothing yet."""
    NO_ROWS = "noRows"
    """The stream has ``boundsBeforeRows=False``, and no row yet."""
    SILENT = "silent"
    """A producer lives, but has sent neither a row nor a bound for a while."""
    PRODUCER_BEHIND = "producerBehind"
    """A producer sends, but has not come as far."""
    KEY = "key"
    """One value of a producer's column ``inOrderPer`` holds the producer."""
    LEASE = "lease"
    """The process of a producer does not answer; the stream waits until the producer's lease ends."""
    PROCESS_GONE = "processGone"
    """The stream waits for nobody: the lease of the last producer has ended."""
    DETACHED = "detached"
    """The stream waits for nobody: the last producer was detached by hand."""
    IDLE = "idle"
    """The stream waits for nobody: all producers that have not left are idle."""
    LEFT = "left"
    """The stream waits for nobody: its producers have left."""
    MAX_LAG = "maxLag"
    """The stream follows its strongest producer at the distance ``maxLag``."""
    ADAPTER_FAILING = "adapterFailing"
    """The adapter that sends as the producer fails, and is restarted, or has been given up."""
    QUERY_STOPPED = "queryStopped"
    """The query was stopped, or has ended as its trigger says."""
    QUERY_FAILED = "queryFailed"
    """The query has failed; its error is named."""
    QUERY_GONE = "queryGone"
    """The process of the query has ended without saying so."""
    QUERY_BEHIND = "queryBehind"
    """The query runs, but has not read as far as its source has come."""
    LIMIT = "limit"
    """The query reads less in a batch than its source has, by maxRowsPerTrigger or maxBytesPerTrigger."""
    CUT = "cut"
    """The query has not read its topics as far as the cut of a bound beside them."""
    HOLD = "hold"
    """The query reads its source later by its option ``hold``."""
    BOUND_LOST = "boundLost"
    """The query's output has no bound: it was lost at an expression or an operator, which is named."""
    OPERATOR = "operator"
    """The query's operators keep rows, so its output lies behind its input."""
    ORDINARY_SOURCE = "ordinarySource"
    """The query also reads a source without bounds, and a watermark that Spark derives from its rows is no promise."""
    JOIN_SIDE = "joinSide"
    """Of a link: the query waits for one side of a join."""
    UNION_INPUT = "unionInput"
    """Of a link: the query waits for one input of a union."""
    NO_ACCOUNT = "noAccount"
    """The query that writes the stream has left no status: it runs without the extension, or an older version."""
    SOURCE_UNREADABLE = "sourceUnreadable"
    """A stream that the query reads cannot be opened."""
    NOT_FOLLOWED = "notFollowed"
    """The query says that it reads a place to which the answer does not lead: it is not where the stream is."""
    DRAIN = "drain"
    """Of a table: a drain writes it, and its stream is not known from the table."""
    NOT_OURS = "notOurs"
    """Of a table: its commits are by others, and say nothing of its time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a link stands below the time that it must reach."""

    cause: Cause
    holder: str | None
    note: str
    remedy: str
    about: str | None = None
    """The producer that the finding is about, also where the stream waits for nobody."""

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


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a link stands below the time that it must reach."""

    cause: Cause
    holder: str | None
    note: str
    remedy: str

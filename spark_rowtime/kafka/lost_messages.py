"""What a partition no longer has of what a feed has read, or has still to read, and where the feed may go on."""

import re
from typing import NamedTuple

from spark_rowtime.errors import DataLostError
from spark_rowtime.kafka.topics import Part

_TRUNCATED = re.compile(r"truncation.*broker end offset is (\d+)")
"""How the client tells by the leaders' epochs that a partition was truncated, and where."""


class LostMessages(NamedTuple):
    """A partition was read up to the offset ``read``, and has the offsets from ``start`` to ``end`` now.

    ``text`` is that of the client.
    """

    part: Part
    read: int
    start: int
    end: int
    text: str

    @property
    def on_at(self) -> int:
        """The offset of the next message that is there and was not taken."""
        if self.read < self.start:
            return self.start
        return self.end if self._truncated_at is None else self._truncated_at

    @property
    def error(self) -> DataLostError:
        """For a feed that may not leave them out."""
        return DataLostError(
            f"{self}. The stream has the partition up to offset {self.read}. Raise the topic's retention, and leave "
            "unclean.leader.election.enable at false. Give lost='skip' to go on at offset "
            f"{self.on_at}, without them.",
            asked=self.read,
            horizon=self.start,
            last=self.end,
        )

    def __str__(self) -> str:
        return f"Messages of partition {self.part.number} of topic {self.part.topic!r} are lost: {self._what}"

    @property
    def _what(self) -> str:
        if self.read < self.start:
            return f"offsets {self.read} to {self.start - 1} are no longer there (retention has removed them)"
        if self._truncated_at is None:
            gone = f"offsets before {self.read} were truncated"
            return f"it ends at offset {self.end} now, so {gone} (an unclean election)"
        gone = f"offsets {self._truncated_at} to {self.read - 1} were truncated"
        return f"{gone}, and what is there now are other messages (an unclean election)"

    @property
    def _truncated_at(self) -> int | None:
        """The offset from which on there are other messages than those that were read; None: that is not known."""
        found = _TRUNCATED.search(self.text)
        return int(found[1]) if found else None

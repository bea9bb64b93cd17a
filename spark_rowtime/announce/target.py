"""Target: what is called for each complete period."""

import logging
from collections.abc import Mapping
from typing import ClassVar, Protocol

from spark_rowtime.announce.period import Period
from spark_rowtime.periods import Unit

LOG = logging.getLogger("spark_rowtime.announce")
PLUGINS = "spark_rowtime.announce"
"""The group of entry points that name kinds of targets, each an ``AssetTarget``."""


class NotTakenError(Exception):
    """A target has not taken an announcement, or has not said that it has.

    ``temporary``: a later attempt may succeed. ``wait``: how many seconds the target asks to wait before it. The
    message holds no secret.
    """

    def __init__(self, message: str, *, temporary: bool, wait: float = 0.0, status: int | None = None) -> None:
        super().__init__(message)
        self.temporary, self.wait, self.status = temporary, wait, status


class Target(Protocol):
    """Something that takes announcements."""

    def announce(self, period: Period, call: str) -> None:
        """Returns when the target has taken the announcement; raises NotTakenError otherwise.

        ``call`` is an id of the announcement. It stays the same where the announcement is repeated.
        """


class AssetTarget(Target, Protocol):
    """A target with partitions of an asset at a URL, ``KIND:URL``. The entry point is the class itself."""

    merges: ClassVar[bool]
    """Whether two hours with the same clock time are one partition."""

    def __init__(self, url: str, asset: str, *, headers: Mapping[str, str], timeout: float) -> None:
        """``headers`` may have ``{env:NAME}`` in their values; ``timeout`` is in seconds."""

    @staticmethod
    def default_key(unit: Unit) -> str:
        """The form of partition keys, for ``strftime``, where none is given."""

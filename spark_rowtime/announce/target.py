"""Target: what is called for each complete period."""

from typing import Protocol

from spark_rowtime.announce.period import Period


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

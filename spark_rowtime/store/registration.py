"""Registration: how a reader tells the stream which rows it has still to read. It needs no lock to go on."""

import logging
import time
import warnings
from collections.abc import Callable

from spark_rowtime.errors import ReaderNotRegisteredWarning, StoreUnavailableError
from spark_rowtime.store.base import Store
from spark_rowtime.store.position import Position
from spark_rowtime.store.retention import SEEN_SECONDS
from spark_rowtime.store.snapshot import READS_STREAM

LOG = logging.getLogger("spark_rowtime")
RETRY_SECONDS = 1.0
"""The least time between two attempts to register after one that failed."""
TELL_SECONDS = 10.0
"""A warning says so if the attempts have failed for so long: where others commit all the time, one of them may fail."""
_TOLD: set[str] = set()
"""The streams of which a warning has said that this user may only read them."""


class Registration:
    """The registration of one reader under its name. ``reads``: see READS_STREAM.

    A position that cannot be registered just now, since another process keeps the stream locked or the disk is full,
    is registered later: the reader goes on. Retention then keeps more than it needs to. A warning says so if that
    lasts, or if nothing was registered before. A user who may not write into a directory reads without a registration,
    as a ReaderNotRegisteredWarning says.
    """

    def __init__(
        self, store: Store, name: str, reads: str = READS_STREAM, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._name, self._reads, self._clock = store, name, reads, clock
        self._kept: Position | None = None
        self._kept_at, self._next_at = 0.0, float("-inf")
        self._failing_since: float | None = None
        self._told = self._refused = False

    @property
    def due(self) -> bool:
        """Whether the position is to be registered again, although it is the same."""
        return self._failing_since is not None or self._clock() - self._kept_at > SEEN_SECONDS

    def keep(self, at: Position) -> None:
        """Registers the position ``at``; the same one again only from time to time, to show that it is in use."""
        now = self._clock()
        if self._refused or (at == self._kept and not self.due) or now < self._next_at:
            return
        try:
            self._store.keep(self._name, at, self._reads)
        except StoreUnavailableError as error:
            if error.values.get("lacks") == "privilege":
                raise
            if error.values.get("lacks") == "write permission":
                self._give_up()
            else:
                self._failed(error)
        else:
            self._kept, self._kept_at = at, now
            self._failing_since, self._told = None, False

    def require(self, at: Position) -> None:
        """Registers the position ``at`` if it is not; raises StoreUnavailableError where it cannot be just now."""
        if at != self._kept:
            self._store.keep(self._name, at, self._reads)

    def _give_up(self) -> None:
        """Says, once in this process, that this user's readers are not registered."""
        self._refused, path = True, self._store.path
        if path in _TOLD:
            return
        _TOLD.add(path)
        warnings.warn(
            f"This user may read the stream at {path}, and not write there, so its readers and queries are not "
            "registered. Retention and gc do not wait for them: where rows are removed before they are read, "
            "DataLostError says so.",
            ReaderNotRegisteredWarning,
            stacklevel=2,
        )

    def _failed(self, error: StoreUnavailableError) -> None:
        now = self._clock()
        self._next_at = now + RETRY_SECONDS
        if self._failing_since is None:
            self._failing_since = now
        if not self._told and (self._kept is None or now - self._failing_since >= TELL_SECONDS):
            self._told = True
            last = "no position" if self._kept is None else f"its position at seq {self._kept.seq}"
            LOG.warning(
                "Reader %r could not register how far it has read; it reads on, and tries again. Until then retention "
                "knows %s of it from this run. %s",
                self._name,
                last,
                error,
            )

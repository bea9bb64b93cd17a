"""The verdict on rows: which of a producer's rows are late, and which bound they imply. Disorder is who gives it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from spark_rowtime.bounds.key_parts import KeyChanges
from spark_rowtime.bounds.train import Timed


class Verdict(NamedTuple):
    """The result for one call.

    ``fits``: for each row, whether it is in time (None: all rows are). ``floor``: the floor that the rows imply (None:
    no new floor). ``why`` names what late rows fell below, for the error. ``bounds``: for each row, the bound in force
    in microseconds (None if all rows fit). ``declared``: for each row, whether it is late by the lateness that its
    producer declared (None: no row is).
    """

    fits: pa.Array | None
    floor: int | None
    why: str = ""
    bounds: pa.Array | None = None
    declared: pa.Array | None = None


class Disorder(ABC):
    """Judges one producer's rows. One thread at a time calls it, once per call of sendRow or sendRows.

    Law (*judge is pure*): ``judge`` changes nothing; only ``take`` changes the state, so that a call that is
    refused leaves no trace.
    """

    declaration: str
    """The declaration in ``openSink``, as JSON; it is compared at a takeover."""
    one_by_one: bool = False
    """Whether the sink may take plain rows one by one without a call of ``judge``; see RowBuffer."""
    implies: bool = False
    """Whether each row implies a bound at its own rowtime."""

    @abstractmethod
    def judge(self, timed: Timed, floor: int | None) -> Verdict:
        """Decides which of the rows are late; ``floor`` is in force before the call."""

    @abstractmethod
    def take(self, accepted: pa.RecordBatch) -> None:
        """Updates the state with the rows that a call has sent successfully."""

    def weakest(self) -> int | None:
        """The floor that all rows taken so far imply, where ``judge`` does not return it."""
        return None

    def promise(self, floor: int) -> None:
        """Takes note of a bound that was sent for all rows."""
        del floor

    def state(self) -> str:
        """The state, as JSON; empty if there is none."""
        return ""

    def changes(self) -> KeyChanges | None:
        """The part of the state that is too large to be stored with every commit, as far as it has changed."""
        return None

    def landed(self, changes: KeyChanges) -> None:
        """Records that a commit has stored ``changes``, the last that were returned."""
        del changes

    def restore(self, state: str, parts: Sequence[bytes] = ()) -> None:
        """Continues from ``state``, and from the contents of the ``changes`` that were stored."""
        del state, parts

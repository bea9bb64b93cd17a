"""How often a fault was injected, and the rows lost or duplicated by it: the table of docs/guarantees.md."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass
class Tally:
    """One line of the table: acknowledged rows that are lost, and rows that are stored more often than sent."""

    times: int = 0
    losses: int = 0
    duplicates: int = 0

    def fault(self, times: int = 1) -> None:
        """Counts injected faults."""
        self.times += times

    def account(self, found: Iterable[Hashable], acknowledged: Iterable[Hashable], sent: Iterable[Hashable]) -> None:
        """Compares the stream's rows with those acknowledged, which must be there, and those sent, which may be."""
        there, most = Counter(found), Counter(sent)
        lost, twice = Counter(acknowledged) - there, there - most
        self.losses += lost.total()
        self.duplicates += twice.total()
        assert not lost, f"acknowledged and gone: {_some(lost)}"
        assert not twice, f"more often than sent: {_some(twice)}"


FAULTS: dict[str, Tally] = {}
"""The tallies by the fault's name, in the order of the tests."""


def table() -> list[str]:
    """The lines of a table in Markdown."""
    head = ["| fault injected | times | rows lost | rows twice |", "|---|---|---|---|"]
    return head + [f"| {fault} | {t.times} | {t.losses} | {t.duplicates} |" for fault, t in FAULTS.items()]


def _some(what: Counter[Any]) -> list[Any]:
    return sorted(what.elements(), key=str)[:10]

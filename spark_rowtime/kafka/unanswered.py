"""Unanswered: partitions for which no leader answers."""

from collections.abc import Container, Mapping
from typing import Any

from spark_rowtime.kafka.client import LOG, name_and_text
from spark_rowtime.kafka.topics import Part

LEADER_TOLD_SECONDS = 60.0
"""A partition whose leader has not answered for so long is logged."""


class Unanswered:
    """Since when questions for partitions have failed.

    Law: a partition is logged once between two answers, after its questions have failed for LEADER_TOLD_SECONDS.
    """

    def __init__(self) -> None:
        self._since: dict[Part, float] = {}
        self._told: set[Part] = set()

    def note(self, failed: Mapping[Part, Any], asked: Container[Part], now: float) -> None:
        """Notes what became of a question: the errors of the partitions that were ``asked`` and gave no answer."""
        self.keep({part for part in self._since if part in failed or part not in asked})
        for part, error in failed.items():
            since = self._since.setdefault(part, now)
            if now - since >= LEADER_TOLD_SECONDS and part not in self._told:
                self._told.add(part)
                LOG.warning(
                    "Partition %s of topic %s has given no answer for %.0f s: %s (%s). It may have no leader; the "
                    "stream waits for it.",
                    *(part.number, part.topic, now - since, *name_and_text(error)),
                )

    def keep(self, parts: Container[Part]) -> None:
        """Forgets all other partitions."""
        self._since = {part: since for part, since in self._since.items() if part in parts}
        self._told &= self._since.keys()

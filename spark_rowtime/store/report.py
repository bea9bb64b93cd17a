"""Report: the result of verifying a whole stream."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Report:
    """The result of a check: ``damage`` and harmless ``remarks``, one line each, and the totals and readable counts."""

    trains: int = 0
    rows: int = 0
    readable_trains: int = 0
    readable_rows: int = 0
    damage: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

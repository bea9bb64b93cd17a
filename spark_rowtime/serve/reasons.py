"""Why a stream stands where it is, as the page shows it."""

from typing import Any

from spark_rowtime.bounds.bound import RowtimeBound
from spark_rowtime.diagnosis.explanation import ChainLink, Explanation
from spark_rowtime.serve.state import Value, bound_value, second


def reasons_of(found: Explanation) -> Value:
    """Returns the answer of ``why`` for the page."""
    return {
        "at": None if found.at is None else bound_value(RowtimeBound(found.at)),
        "complete": found.complete,
        "cause": found.cause.value,
        "note": found.note,
        "remedy": found.remedy,
        "chain": [_link(link) for link in found.chain],
    }


def _link(link: ChainLink) -> dict[str, Any]:
    moved = link.lastMoved
    return {
        "kind": link.kind,
        "name": link.name,
        "bound": bound_value(link.bound),
        "behindSeconds": link.behindSeconds,
        "moved": None if moved is None else second(round(moved.timestamp() * 1_000_000)),
        "note": link.note,
    }

"""Times in their units, and messages that are bounds; no broker is needed."""

from typing import Any

import pytest

from spark_rowtime.kafka.malformed import MalformedError
from spark_rowtime.kafka.times import time_reader
from spark_rowtime.kafka.watermarks import FORMATS

SECONDS = 1767621600  # 2026-01-05T14:00:00Z
TSO = SECONDS * 1000 << 18
TIMES: list[tuple[str, Any]] = [
    ("s", SECONDS),
    ("s", float(SECONDS)),
    ("ms", SECONDS * 1000),
    ("us", SECONDS * 10**6),
    ("ns", SECONDS * 10**9 + 999),
    ("hlc", f"{SECONDS * 10**9}.0000000007"),
    ("tso", TSO + 5),
]


@pytest.mark.parametrize(("unit", "value"), TIMES)
def test_a_time_in_a_unit(unit: str, value: Any) -> None:
    assert time_reader(unit)(value).isoformat() == "2026-01-05T14:00:00+00:00"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "hlc", "tso"])
@pytest.mark.parametrize("value", [2**80, -1, True, None, "soon", [], float("nan"), float("inf")])
def test_what_is_no_time_in_a_unit(unit: str, value: Any) -> None:
    with pytest.raises(MalformedError, match=f"not a time in the unit '{unit}'"):
        time_reader(unit)(value)


def test_watermarks_of_ticdc() -> None:
    ticdc = FORMATS["ticdc"]
    canal = {"id": 0, "type": "TIDB_WATERMARK", "isDdl": False, "_tidb": {"watermarkTs": TSO}}
    simple = {"version": 1, "type": "WATERMARK", "commitTs": TSO, "buildTs": 1}
    found = [ticdc(canal), ticdc(simple)]
    assert [bound and bound.time.isoformat() for bound in found] == ["2026-01-05T14:00:00+00:00"] * 2
    assert ticdc({"type": "INSERT", "commitTs": TSO}) is None
    for broken in ({"type": "WATERMARK"}, {**canal, "_tidb": None}, {**canal, "_tidb": []}, {"type": canal["type"]}):
        with pytest.raises(MalformedError):
            ticdc(broken)


def test_a_row_with_a_field_resolved_is_a_row() -> None:
    assert FORMATS["resolved"]({"resolved": "1.0", "n": 1}) is None

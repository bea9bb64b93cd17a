"""What is said about late rows, and how often they are counted."""

import pytest
from unit_support import new_stream, row

import spark_rowtime as rt

NUMBERED = "rowtime TIMESTAMP NOT NULL, number BIGINT"
LIMIT = "below the largest value of a column of whole numbers less its lateness"


def test_a_row_below_the_lateness_of_a_whole_number_is_not_called_below_the_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with rt.openSink(new_stream(NUMBERED), producer="P", lateness={"number": 5}) as sink:
        sink.sendRow(("2006-09-11T10:00:00Z", 100))
        with caplog.at_level("WARNING"), pytest.raises(rt.LateRowError) as caught:
            sink.sendRow(("2006-09-11T10:00:00Z", 94))
    assert f"1 late row(s) of producer 'P' at 2006-09-11T10:00:00Z, {LIMIT}" in caplog.text
    assert f"{LIMIT}, " in str(caught.value)
    assert ". A row must not be below 95, the largest 'number' of earlier steps" in str(caught.value)
    assert "none" not in caplog.text + str(caught.value)
    whose = {"boundOf": "producer", "boundBy": "P", "boundEvent": None}
    assert caught.value.values == {"producer": "P", "rows": 1, "bound": None, **whose}


@pytest.fixture
def source() -> str:
    """A stream with one row, at 9:00."""
    path = new_stream()
    with rt.openSink(path) as sink:
        sink.sendRow(row("9:00"))
    return path


@pytest.fixture
def ahead() -> str:
    """A stream whose bound is 10:00."""
    path = new_stream()
    with rt.openSink(path) as sink:
        sink.sendRowtimeBound("2006-09-11T10:00:00Z")
    return path


def test_each_drain_into_a_sink_that_raises_counts_the_late_rows_again(source: str, ahead: str) -> None:
    with rt.openSink(ahead, producer="copy") as sink, rt.openReader(source) as reader:
        for drains in (1, 2):
            with pytest.raises(rt.LateRowError):
                reader.drainTo(sink)
            sink.flush()
            assert rt.describeStream(ahead).rejected == drains


def test_a_drain_into_a_sink_that_rejects_goes_on_and_counts_once(source: str, ahead: str) -> None:
    with rt.openSink(ahead, producer="copy", onLate="reject") as sink, rt.openReader(source) as reader:
        for _ in range(2):
            reader.drainTo(sink)
    assert rt.describeStream(ahead).rejected == 1


def test_a_row_that_lies_years_below_the_bound_has_a_time_in_another_unit(ahead: str) -> None:
    """Microseconds since 1970 that were taken from seconds are in 1970."""
    with rt.openSink(ahead, producer="P") as sink:
        with pytest.raises(rt.LateRowError, match="more than 10 years below: check the unit of its time"):
            sink.sendRow({**row("10:00"), "rowtime": "1970-01-14T09:39:00Z"})
        with pytest.raises(rt.LateRowError) as caught:
            sink.sendRow(row("9:00"))
    assert "unit" not in str(caught.value)

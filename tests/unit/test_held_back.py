"""Who reads in order of rowtime to the end of a stream without a bound is told how many rows wait, and for whom."""

import logging
import threading
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from unit_support import new_stream, row, when

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.reader import reader as module

SAID = "2 row(s) of {} wait for a bound, and none of them is read in order of rowtime"


@pytest.fixture
def path() -> str:
    """Two rows, of a producer that makes no promise, as a query over late rows does not."""
    path = new_stream()
    with rt.openSink(path, producer="late", rowsImplyBounds=False) as sink:
        sink.sendRow(row("10:00"))
        sink.sendRow(row("09:00"))
        sink.abandon()
    return path


def test_the_end_of_a_stream_without_a_bound_is_said_once(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with rt.openReader(path) as reader:
        assert list(reader) == []
        assert reader.read() is None
    (said,) = caplog.messages
    assert SAID.format(path) in said
    assert "waits for late" in said
    assert "order='arrival'" in said


def test_who_gets_the_rows_or_waits_for_a_bound_that_moves_is_told_nothing(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with rt.openReader(path, order="arrival") as reader:
        assert sum(train.rows.num_rows for train in reader) == 2
    with rt.openSink(path, producer="late", rowsImplyBounds=False) as sink:
        sink.sendRowtimeBound(when("09:30"))
    with rt.openReader(path) as reader:
        list(reader)
    with rt.openReader(new_stream()) as reader:
        assert list(reader) == []
    assert caplog.messages == []


def test_who_follows_is_told_after_some_seconds(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EXPIRY_CHECK_SECONDS", 0.001)
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.01)
    said = threading.Event()

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.set()

    log, handler = logging.getLogger("spark_rowtime.reader"), Said()
    log.addHandler(handler)
    try:
        with rt.openReader(path, follow=True) as reader:
            thread = threading.Thread(target=list, args=[reader], daemon=True)
            thread.start()
            assert said.wait(240)
            rt.openSink(path, producer="late", rowsImplyBounds=False).close(complete=True)
            thread.join(240)
    finally:
        log.removeHandler(handler)
    assert len(caplog.messages) == 1


def test_who_asks_again_and_again_is_told_after_some_seconds(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time, not by the looks, of which each commit of the stream makes one."""
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with rt.openReader(path) as reader:
        for _ in range(30):
            assert reader.read(timeout=0) is None
        assert caplog.messages == []
        now[0] += module.QUIET_SECONDS
        assert reader.read(timeout=0) is None
    assert len(caplog.messages) == 1


def test_the_command_says_which_rows_a_drain_has_left(tmp_path, caplog: pytest.LogCaptureFixture) -> None:
    stream = str(tmp_path / "s.rowtime")
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(stream, producer="shop", rowsImplyBounds=False) as sink:
        sink.sendRows([("2026-01-05T10:00:00Z", 1), ("2026-01-05T12:00:00Z", 2)])
        sink.sendRowtimeBound("2026-01-05T11:00:00Z")
        sink.abandon()
    done = CliRunner().invoke(main, ["drain", stream, f"parquet:{tmp_path}/lake/date=%Y-%m-%d/hour=%H"])
    assert "1 row(s) wait for the bound, which is 2026-01-05T11:00:00Z and waits for shop." in done.stderr
    bare = str(tmp_path / "bare.rowtime")
    rt.createStream(bare, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(bare, producer="shop", rowsImplyBounds=False) as sink:
        sink.sendRow(("2026-01-05T10:00:00Z", 1))
        sink.abandon()
    done = CliRunner().invoke(main, ["drain", bare, f"parquet:{tmp_path}/bare/date=%Y-%m-%d/hour=%H"])
    assert done.exit_code == 0
    assert "1 row(s) of" in caplog.text

"""When a reader looks for news."""

import threading
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store.local import watch
from spark_rowtime.store.local.watch import CALM, FIRST, POLL, QUIET, Watch


def listening(folder: Path, slept: list[float]) -> Watch:
    """A watch whose pauses have become longer than its short ones."""
    made = Watch(folder, slept.append)
    while sum(slept) < POLL - FIRST:
        made.pause(1)
    return made


def test_pauses_double_while_nothing_is_written(tmp_path: Path) -> None:
    slept: list[float] = []
    made = listening(tmp_path, slept)
    assert slept == [FIRST * 2**n for n in range(len(slept))]
    for _ in range(10):
        made.pause(0.001)
    assert made._step == CALM
    made.close()


def test_what_is_written_ends_the_pause_and_the_next_are_short(tmp_path: Path) -> None:
    slept: list[float] = []
    made = listening(tmp_path, slept)
    (tmp_path / "catalog.db-wal").write_text("news")
    slept.clear()
    made.pause(3600)
    made.pause(3600)
    assert slept == [FIRST]
    made.close()


def test_pauses_grow_longer_while_each_commit_that_is_found_was_reported(tmp_path: Path) -> None:
    made = listening(tmp_path, [])

    def longest() -> float:
        for _ in range(15):
            made.pause(0.001)
        return made._step

    made.found()
    assert longest() == CALM, "nothing was reported before the commit"
    for _ in range(2):
        (tmp_path / "catalog.db-wal").write_text("news")
        made.found()
        assert longest() == QUIET
    (tmp_path / "catalog.db-wal").write_text("news")
    made.pause(3600)
    made.found()
    assert longest() == QUIET, "it was reported, and read before the commit was found"
    made.found()
    made.pause(0.001)
    assert longest() == CALM
    made.close()


def test_no_pause_is_longer_than_asked(tmp_path: Path) -> None:
    slept: list[float] = []
    made = Watch(tmp_path, slept.append)
    made.pause(0.000_01)
    assert slept == [0.000_01]
    made.close()


def test_where_the_system_has_no_more_watches_the_pauses_double_from_a_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(watch, "INotify", none_left)
    slept: list[float] = []
    made = Watch(tmp_path, slept.append)
    for most in (1.0, 1.0, 0.0005, 1.0, 1.0, 1.0, 1.0):
        made.pause(most)
    assert slept == [POLL, 2 * POLL, 0.0005, 8 * POLL, 16 * POLL, CALM, CALM]
    made.begin()
    made.pause(1.0)
    assert slept[-1] == POLL, "the next wait begins again"
    made.close()


def test_a_folder_that_is_gone_is_looked_at_all_the_same(tmp_path: Path) -> None:
    slept: list[float] = []
    made = Watch(tmp_path / "gone", slept.append)
    made.pause(1)
    made.pause(1)
    assert slept == [POLL, 2 * POLL]
    made.close()


def test_a_reader_that_waits_may_be_closed_by_another_thread(tmp_path: Path) -> None:
    rt.createStream(str(tmp_path / "s"), "rowtime TIMESTAMP NOT NULL")
    for _ in range(5):
        reader, errors = rt.openReader(str(tmp_path / "s"), order="arrival"), list[str]()

        def wait(reader: rt.RowReader = reader, errors: list[str] = errors) -> None:
            try:
                reader.read(timeout=240)
            except Exception as error:
                errors.append(type(error).__name__)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while reader._store._watch._notifier is None:  # type: ignore[attr-defined]
            waiting.join(0.01)
        reader.close()
        waiting.join(240)
        assert errors == ["SinkClosedError"]


def test_a_watch_that_was_closed_while_it_was_read_ends_afterwards(tmp_path: Path) -> None:
    made = listening(tmp_path, [])
    assert made._notifier is not None
    with made._reading:
        made.close()
        assert not made._notifier.closed
    made.pause(1)
    assert made._notifier.closed

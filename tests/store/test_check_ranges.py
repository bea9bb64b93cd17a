"""``rowtime check`` reads a stream in ranges: others commit, and gc removes, while it looks."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_rowtime.store.local import LocalStore, check, check_local
from tests.store.streams import Writer, place

Open = Callable[..., LocalStore]


def filled(open_here: Open) -> Writer:
    writer = Writer(open_here(), "a")
    for second in range(1, 100):
        writer.send([second], floor=second, late=[0] if second % 10 == 0 else ())
    return writer


@pytest.fixture
def in_tens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "RANGE_EVENTS", 10)


def between_ranges(monkeypatch: pytest.MonkeyPatch, do: Callable[[int], object]) -> None:
    """Calls ``do`` with the seq of each train, when the check has read it."""
    look = check._train

    def looked(reader: Any, event: Any, *rest: Any) -> None:
        look(reader, event, *rest)
        do(event[0])

    monkeypatch.setattr(check, "_train", looked)


@pytest.mark.usefixtures("in_tens")
def test_it_holds_no_transaction_while_it_reads(
    open_here: Open, local_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the catalog's log could not be folded in, and would grow."""
    writer = filled(open_here)
    folded = []

    def commit(seq: int) -> None:
        writer.send([seq + 1000], floor=seq + 1000, late=[0])
        folded.append(writer.store._catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())

    between_ranges(monkeypatch, commit)
    report = check_local(local_path)
    assert (report.damage, report.trains, report.readable_rows) == ([], 99, 99)
    assert [busy for busy, _, _ in folded] == [0] * 99


@pytest.mark.usefixtures("in_tens")
@pytest.mark.parametrize("upto", [30, 95])
def test_what_gc_removes_meanwhile_is_no_damage(
    open_here: Open, local_path: str, monkeypatch: pytest.MonkeyPatch, upto: int
) -> None:
    writer = filled(open_here)
    collector = open_here()
    writer.store.close()

    def remove(seq: int) -> None:
        if seq == 15:
            collector.keep("reader", place(upto))
            assert collector.gc(age=0).rows == upto - 1

    between_ranges(monkeypatch, remove)
    assert check_local(local_path).damage == []


@pytest.mark.usefixtures("in_tens")
def test_a_gap_is_damage_wherever_it_lies(open_here: Open, local_path: str) -> None:
    filled(open_here).store._catalog.execute("DELETE FROM events WHERE seq BETWEEN 31 AND 33")
    assert any("seq 31 to 33 are missing from the log" in said for said in check_local(local_path).damage)

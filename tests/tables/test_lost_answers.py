"""A commit whose answer is lost or wrong: a drain looks whether the table has it, and does not fence itself.

The tables are real, and so are their libraries; the one call in which an answer is on its way raises, before or after
it has done its work.
"""

from collections.abc import Callable, Iterator
from typing import Any

import deltalake
import pytest
from deltalake.exceptions import CommitFailedError as DeltaRefused
from deltalake.exceptions import DeltaError
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

import spark_rowtime as rt
from spark_rowtime.drain.tables import outcome
from tests.tables.lake import TRANSACTIONAL, Lake
from tests.tables.test_drain import SCHEMA, fill
from tests.tables.test_refused import drained, opened

REFUSED: dict[str, Exception] = {
    "delta": DeltaRefused("version already exists"),
    "iceberg": CommitFailedException("Requirement failed: branch main has changed"),
}
LOST: dict[str, Exception] = {
    "delta": DeltaError("error sending request: connection closed"),
    "iceberg": CommitStateUnknownException("502 Bad Gateway"),
}
CALLS: dict[str, tuple[Any, str]] = {
    "delta": (deltalake, "write_deltalake"),
    "iceberg": (SqlCatalog, "commit_table"),
}


@pytest.fixture
def orders(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setattr(outcome, "PAUSES", (0.0, 0.0))
    rt.createStream(lake.stream, SCHEMA)
    fill(lake.stream, range(10, 12))
    return lake


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bool]]:
    """``answer(kind, *faults)``: each next commit meets one of the faults: an error, and whether it comes after it."""

    def inject(kind: str, *faults: tuple[Exception, bool], then: Any = None) -> list[bool]:
        owner, name = CALLS[kind]
        real, left, made = getattr(owner, name), list(faults), []

        def call(*arguments: Any, **options: Any) -> Any:
            error, landed = left.pop(0) if left else (None, True)
            found = real(*arguments, **options) if landed else None
            made.append(landed)
            if error is not None:
                if then is not None:
                    then()
                raise error
            return found

        monkeypatch.setattr(owner, name, call)
        return made

    return inject


def whole(orders: Lake, kind: str, sink: Any) -> None:
    """The sink goes on, and each row is in the table once."""
    fill(orders.stream, range(12, 14))
    drained(orders, sink)
    assert orders.numbers(kind) == list(range(10, 14))
    fill(orders.stream, range(14, 16))
    orders.drain(kind)
    assert orders.numbers(kind) == list(range(10, 16))
    assert rt.readTableBound(orders.target(kind)) == rt.RowtimeBound("2026-01-05T15:45:00Z")


@pytest.mark.parametrize("kind", TRANSACTIONAL)
@pytest.mark.parametrize("errors", [REFUSED, LOST], ids=["refused", "lost"])
def test_a_commit_that_is_there_although_its_answer_was_an_error_counts(
    orders: Lake, kind: str, errors: dict[str, Exception], answer: Callable[..., list[bool]]
) -> None:
    sink = opened(orders, kind)
    made = answer(kind, (errors[kind], True))
    drained(orders, sink)
    assert made[0], "the first commit took place"
    whole(orders, kind, sink)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_commit_that_is_not_there_is_made_again(orders: Lake, kind: str, answer: Callable[..., list[bool]]) -> None:
    sink = opened(orders, kind)
    made = answer(kind, (LOST[kind], False), (LOST[kind], False))
    drained(orders, sink)
    assert made[:3] == [False, False, True]
    whole(orders, kind, sink)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_commit_that_is_made_again_may_find_itself(
    orders: Lake, kind: str, answer: Callable[..., list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt arrives late: after the look, and before the second attempt, which is then refused."""
    sink = opened(orders, kind)
    real, looks = outcome.looked_up, []

    def blind_at_first(*arguments: Any) -> Any:
        looks.append(1)
        return None if len(looks) == 1 else real(*arguments)

    monkeypatch.setattr(outcome, "looked_up", blind_at_first)
    answer(kind, (LOST[kind], True))
    drained(orders, sink)
    assert len(looks) >= 2, "the second attempt was refused, and looked"
    whole(orders, kind, sink)


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_a_commit_that_never_gets_an_answer_says_what_is_not_known(
    orders: Lake, kind: str, answer: Callable[..., list[bool]]
) -> None:
    sink = opened(orders, kind)
    answer(kind, *[(LOST[kind], False)] * 3)
    with pytest.raises(rt.StoreUnavailableError, match="was not in the table when it was last looked"):
        drained(orders, sink)
    sink.abandon()
    whole(orders, kind, opened(orders, kind))


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_where_the_table_cannot_be_asked_the_outcome_is_not_known(
    orders: Lake, kind: str, answer: Callable[..., list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a refusal is no proof then: PyIceberg would remove the files of a commit that is in the table."""
    sink = opened(orders, kind)

    def away(*_: Any) -> Any:
        raise OSError("connection refused")

    owner, name = (type(sink._table), "_opened") if kind == "delta" else (SqlCatalog, "load_table")
    with monkeypatch.context() as outage:
        answer(kind, (REFUSED[kind], True), then=lambda: outage.setattr(owner, name, away))
        with pytest.raises(rt.StoreUnavailableError, match="Whether it has this commit is not known"):
            drained(orders, sink)
    sink.abandon()
    whole(orders, kind, opened(orders, kind))


@pytest.mark.parametrize("kind", TRANSACTIONAL)
@pytest.mark.parametrize("errors", [REFUSED, LOST], ids=["refused", "lost"])
def test_a_commit_of_another_drain_is_not_taken_for_ones_own(
    orders: Lake, kind: str, errors: dict[str, Exception], answer: Callable[..., list[bool]]
) -> None:
    """Both have the same rows, position and bound."""
    sink = opened(orders, kind)
    orders.drain(kind)
    answer(kind, (errors[kind], False))
    with pytest.raises(rt.ProducerFencedError):
        drained(orders, sink)
    assert orders.numbers(kind) == [10, 11]


@pytest.mark.parametrize("kind", TRANSACTIONAL)
def test_ones_own_commit_counts_below_that_of_another_drain_which_fences_the_next(
    orders: Lake, kind: str, answer: Callable[..., list[bool]]
) -> None:
    sink = opened(orders, kind)

    def other() -> None:
        if not fenced:
            fenced.append(1)
            fill(orders.stream, range(12, 14))
            orders.drain(kind)

    fenced: list[int] = []
    answer(kind, (LOST[kind], True), then=other)
    with rt.openReader(orders.stream) as reader:
        sink.sendRows(reader.read().rows)
        sink.flush(reader.position)
        sink.commit()
    sink.sendRowtimeBound("2026-01-05T20:00:00Z")
    sink.flush()
    with pytest.raises(rt.ProducerFencedError):
        sink.commit()
    assert len(orders.numbers(kind)) == len(set(orders.numbers(kind)))

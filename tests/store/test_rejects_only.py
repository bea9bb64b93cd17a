"""Rows that were found to be late elsewhere are kept in a stream, without a producer that it waits for."""

import pytest

import spark_rowtime as rt
from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.origin import STREAM, BoundOrigin
from spark_rowtime.store import check_store
from spark_rowtime.store.commits import Rejected, rejects_only
from spark_rowtime.store.local import LocalStore
from tests.store.streams import NewStream, Writer, at, batch, seconds


def late(*times: float) -> tuple[Rejected, ...]:
    return (Rejected("late", at(10), batch(*times), BoundOrigin(STREAM)),)


def test_late_rows_of_elsewhere_are_kept_once_and_move_nothing(new_stream: NewStream) -> None:
    store = new_stream()()
    writer = Writer(store, "a")
    writer.send([10], floor=10)
    before = store.head()
    store.reject("spark-q-0", 3, late(1, 2), "x")
    store.reject("spark-q-0", 3, late(1, 2), "x")
    store.reject("spark-q-0", 7, late(5), "y")
    store.reject("spark-q-0", 7, late(5), "y")
    assert seconds(store.rejected().select(["rowtime"])) == [1, 2, 5]
    assert store.head() == before
    found = store.producer("spark-q-0")
    assert found is not None
    assert (found.status, found.rejected, found.accepted) == (Status.LEFT, 3, 0)
    assert store.summary().rejected == 3
    assert store.summary().attached == 1
    writer.send([11], floor=11)
    assert store.head().floor == at(11), "nothing waits for it"
    if isinstance(store, LocalStore):
        assert check_store(store.path).damage == []


def test_they_are_not_forgotten(new_stream: NewStream) -> None:
    store = new_stream(retainRejected=0)()
    now = store.steady()
    store.reject("spark-q-0", 3, late(1), "x")
    store.steady = lambda: now._replace(micros=now.micros + 10 * 86_400_000_000)
    store.gc()
    store.reject("spark-q-0", 3, late(1), "x")
    assert store.summary().rejected == 1


@pytest.mark.parametrize(("number", "digest"), [(3, "other"), (2, "x"), (1, "")])
def test_others_under_the_number_of_those_that_are_there_are_refused(
    new_stream: NewStream, number: int, digest: str
) -> None:
    """A query with an older copy of its checkpoint has other late rows under numbers that the stream knows."""
    store = new_stream()()
    store.reject("spark-q-0", 3, late(1), "x")
    with pytest.raises(rt.ProducerFencedError, match=f"The late rows of batch {number - 1} of spark-q-0") as error:
        store.reject("spark-q-0", number, late(2), digest)
    assert error.value.values["batch"] == number - 1
    store.reject("spark-q-0", 3, late(1), "x")
    assert seconds(store.rejected().select(["rowtime"])) == [1]
    store.reject("spark-q-0", 4, late(3), "z")
    assert seconds(store.rejected().select(["rowtime"])) == [1, 3]


def test_of_rows_that_an_earlier_version_has_kept_the_number_decides(new_stream: NewStream) -> None:
    store = new_stream()()
    store.reject("spark-q-0", 3, late(1), "")
    for number, digest in ((3, "x"), (2, "y")):
        store.reject("spark-q-0", number, late(2), digest)
    assert seconds(store.rejected().select(["rowtime"])) == [1]
    store.reject("spark-q-0", 4, late(3), "x")
    with pytest.raises(rt.ProducerFencedError):
        store.reject("spark-q-0", 4, late(4), "y")
    assert rejects_only(store.snapshot().records["spark-q-0"].checkpoint)

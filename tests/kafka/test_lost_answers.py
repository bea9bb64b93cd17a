"""The answer to a drain's commit is lost: it asks again until the brokers have answered, and each row is there once."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

import spark_rowtime as rt
from spark_rowtime.drain.kafka import transactions
from tests.kafka.test_transactions import LAST, stream  # noqa: F401  (a fixture)
from tests.kafka.topics import drain, messages, opened, rows_and_bound

pytest.importorskip("confluent_kafka")
QUICK = {"reconnect.backoff.max.ms": 100}
SHORT = {"transaction.timeout.ms": 1000, **QUICK}
"""The brokers end a transaction after a second."""
LONG_LOST = 6
"""So many requests in a row are made in more than a second."""
FOR_EVER = 1000


@pytest.fixture
def proxy(kafka: Any) -> Iterator[Any]:
    """The proxy between drains and the broker, which loses nothing before a test says so, or after it."""
    yield kafka.proxy
    kafka.proxy.lose(0, delivered=False)


def draining(
    proxy: Any, path: str, topic: str, losses: int, *, delivered: bool, seconds: float = 240, **options: Any
) -> None:
    """Drains in one transaction through the proxy, which loses answers to its commit, or the requests themselves.

    ``seconds``: how long the drain asks the brokers for an answer, once it is open.
    """
    with (
        rt.openReader(path) as reader,
        opened(proxy.bootstrap, topic, reader.schema, every="1 hour", **options) as sink,
        patch.object(transactions, "REQUEST_SECONDS", seconds),
    ):
        proxy.lose(losses, delivered=delivered)
        reader.drainTo(sink)
        assert proxy.lost >= proxy.losses > 0
        assert sink.rowtimeBound == rt.RowtimeBound.END


def whole(kafka: Any, path: str, topic: str) -> None:
    """After another drain each row is there once."""
    drain(kafka.bootstrap, path, topic)
    numbers, bound = rows_and_bound(messages(kafka.bootstrap, topic))
    assert (sorted(numbers), bound) == ([*range(6)], LAST)


@contextmanager
def answers_after(proxy: Any, seconds: float) -> Iterator[list[float]]:
    """In the block the proxy loses nothing more once so many seconds have passed since its first loss.

    Yields when that was.
    """
    over, first = threading.Event(), list[float]()
    proxy.lose(0, delivered=False)

    def end_losses() -> None:
        while not proxy.lost and not over.wait(0.01):
            pass
        first.append(time.monotonic())
        over.wait(seconds)
        proxy.losses = proxy.lost

    thread = threading.Thread(target=end_losses)
    thread.start()
    try:
        yield first
    finally:
        over.set()
        thread.join()


@pytest.mark.long
def test_a_commit_whose_answer_was_lost_for_longer_than_a_transaction_may_take(
    kafka: Any,
    stream: str,  # noqa: F811
    proxy: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The brokers have committed, so they do not end it: the drain asks until it knows, and goes on.

    If the machine stands still before the commit, the brokers end the transaction. Then another drain has more time.
    """
    monkeypatch.setattr(transactions, "REQUEST_SECONDS", 240.0)
    topic = kafka.topic()
    for seconds in (4, 20, 60):
        began = time.monotonic()
        try:
            with answers_after(proxy, seconds + 1) as lost:
                given = {**QUICK, "transaction.timeout.ms": seconds * 1000}
                draining(proxy, stream, topic, FOR_EVER, delivered=True, options=given)
            break
        except rt.KafkaUnavailableError:
            in_time = lost[0] < began + seconds
            if in_time or seconds == 60 or messages(kafka.bootstrap, topic) != [[], [], []]:
                raise
    assert sorted(rows_and_bound(messages(kafka.bootstrap, topic))[0]) == [*range(6)]
    whole(kafka, stream, topic)


@pytest.mark.long
@pytest.mark.parametrize("delivered", [True, False])
def test_a_commit_whose_connection_was_cut_a_few_times(
    kafka: Any,
    stream: str,  # noqa: F811
    proxy: Any,
    delivered: bool,
) -> None:
    topic = kafka.topic()
    draining(proxy, stream, topic, 3, delivered=delivered)
    whole(kafka, stream, topic)


@pytest.mark.long
def test_a_commit_that_came_too_late_is_an_error(kafka: Any, stream: str, proxy: Any) -> None:  # noqa: F811
    topic = kafka.topic()
    with pytest.raises(rt.KafkaUnavailableError, match=r"has taken longer than 1 s \(transaction\.timeout\.ms\)"):
        draining(proxy, stream, topic, LONG_LOST + 2, delivered=False, options=SHORT)
    assert messages(kafka.bootstrap, topic) == [[], [], []]
    whole(kafka, stream, topic)


@pytest.mark.long
@pytest.mark.parametrize("delivered", [True, False])
def test_a_commit_that_never_gets_an_answer_says_what_is_not_known(
    kafka: Any,
    stream: str,  # noqa: F811
    proxy: Any,
    delivered: bool,
) -> None:
    """If the machine stands still before the commit, the transaction's time is over. Then another one has more."""
    for limit in (1, 10, 60):
        topic, given = kafka.topic(), {**SHORT, "transaction.timeout.ms": limit * 1000}
        with pytest.raises(rt.KafkaUnavailableError) as caught:
            draining(proxy, stream, topic, FOR_EVER, delivered=delivered, seconds=1.5, options=given)
        proxy.lose(0, delivered=False)
        whole(kafka, stream, topic)
        if "has taken longer" not in str(caught.value):
            break
    assert re.search(r"have not answered .* whether .* Run the drain again", str(caught.value))

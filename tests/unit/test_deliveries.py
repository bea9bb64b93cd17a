"""Deliveries: a bound waits for the messages before it, and its cut has the end of all that arrived."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from spark_rowtime.kafka.deliveries import Deliveries


def message(partition: int, offset: int | None) -> Any:
    return SimpleNamespace(partition=lambda: partition, offset=lambda: offset)


FAILED: Any = SimpleNamespace(name=lambda: "MSG_SIZE_TOO_LARGE", str=lambda: "too large")


def arrive(deliveries: Deliveries, *offsets: int | None, partition: int = 0) -> None:
    for offset in offsets:
        _, arrived = deliveries.sent(None)
        arrived(None, message(partition, offset))


def test_a_bound_waits_for_the_messages_before_it_alone() -> None:
    deliveries = Deliveries()
    (first, one), (same, two) = deliveries.sent(None), deliveries.sent(None)
    bound = deliveries.begin()
    later, three = deliveries.sent(None)
    assert (first, same, later) == (bound, bound, bound + 1)
    assert (deliveries.waiting(bound), deliveries.waiting(later)) == (2, 3)
    one(None, message(0, 0))
    assert deliveries.waiting(bound) == 1
    two(FAILED, None)
    assert (deliveries.waiting(bound), deliveries.waiting(later)) == (0, 1)
    three(None, message(0, 1))
    assert deliveries.waiting(deliveries.begin()) == 0


def test_a_message_that_the_client_has_not_taken_holds_no_bound() -> None:
    deliveries = Deliveries()
    generation, _ = deliveries.sent(None)
    deliveries.not_sent(generation)
    assert deliveries.waiting(deliveries.begin()) == 0


def test_the_ends_are_behind_the_last_message_of_each_partition() -> None:
    deliveries = Deliveries()
    arrive(deliveries, 0, 1)
    arrive(deliveries, 5, partition=2)
    assert deliveries.ends() == {0: 2, 2: 6}
    deliveries.reach({0: 1, 1: 4, 2: 9})
    assert deliveries.ends() == {0: 2, 1: 4, 2: 9}
    deliveries.ends().clear()
    assert deliveries.ends() == {0: 2, 1: 4, 2: 9}


def test_what_was_not_delivered_is_told_once_and_moves_no_end() -> None:
    deliveries = Deliveries()
    _, arrived = deliveries.sent(None)
    arrived(FAILED, message(0, 7))
    assert (deliveries.take_failed(), deliveries.take_failed()) == (["MSG_SIZE_TOO_LARGE: too large"], [])
    assert (deliveries.ends(), deliveries.take_back()) == ({}, False)


@pytest.mark.parametrize(("offsets", "back"), [((0, 1), False), ((3, 3), True), ((3, 2), True), ((0, None), True)])
def test_ends_that_are_not_those_of_the_messages_are_told_once(offsets: tuple[int | None, ...], back: bool) -> None:
    deliveries = Deliveries()
    arrive(deliveries, *offsets)
    assert (deliveries.take_back(), deliveries.take_back()) == (back, False)


@pytest.mark.parametrize(("offsets", "silent"), [((), False), ((1,), False), ((None,), True), ((None, 1), False)])
def test_a_broker_that_tells_no_offset(offsets: tuple[int | None, ...], silent: bool) -> None:
    deliveries = Deliveries()
    arrive(deliveries, *offsets)
    assert deliveries.tells_no_offsets is silent


def test_the_callers_function_may_ask_for_what_arrived() -> None:
    """It is called after the message has counted, and not under the lock."""
    deliveries, told = Deliveries(), []

    def on_delivery(error: Any, found: Any) -> None:
        told.append((error, found.offset(), deliveries.ends()))

    _, arrived = deliveries.sent(on_delivery)
    called = threading.Thread(target=arrived, args=(None, message(0, 3)), daemon=True)
    called.start()
    called.join(240)
    assert told == [(None, 3, {0: 4})]

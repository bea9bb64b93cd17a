"""rt.KafkaBounds without a broker: what a bound waits for, what its cut has, and what is refused."""

from types import SimpleNamespace
from typing import Any

import pytest
from unit_support import new_stream, us, when

import spark_rowtime as rt
from spark_rowtime.kafka import bounds
from spark_rowtime.kafka.topics import Part, TopicState
from spark_rowtime.store import open_store
from tests.store.forking import ended, forked

REFUSED: Any = SimpleNamespace(name=lambda: "MSG_SIZE_TOO_LARGE", str=lambda: "too large")


class Client:
    """A producer of Kafka with one topic of two partitions. Messages arrive in ``flush`` while ``delivers`` is set."""

    def __init__(self, now: list[float]) -> None:
        self.now, self.id = now, "abc"
        self.topic: dict[int, list[str]] = {0: ["earlier"], 1: []}
        self.waiting: list[tuple[int, str, Any]] = []
        self.delivers, self.asked, self.full, self.broken = True, 0, 0, False

    def produce(self, _: str, *, value: str, key: None, partition: int, on_delivery: Any) -> None:
        assert key is None
        if self.broken:
            raise TypeError
        if self.full:
            raise BufferError
        self.waiting.append((partition, value, on_delivery))

    def poll(self, seconds: float) -> None:
        self.now[0] += seconds
        self.full -= bool(self.full and seconds)

    def flush(self, seconds: float) -> None:
        self.now[0] += seconds
        while self.waiting and self.delivers:
            self.deliver()

    def deliver(self, error: Any = None) -> None:
        partition, value, arrived = self.waiting.pop(0)
        if error is None:
            self.topic[partition].append(value)
        offset = len(self.topic[partition]) - 1
        arrived(error, SimpleNamespace(partition=lambda: partition, offset=lambda: offset))

    def __len__(self) -> int:
        return len(self.waiting)

    def describe(self, name: str) -> TopicState:
        return TopicState(name, self.id, 2)

    def ends(self, parts: tuple[Part, ...], *, committed: bool) -> dict[Part, int]:
        assert not committed, "messages of open transactions may be committed later"
        self.asked += 1
        return {part: len(self.topic[part.number]) for part in parts}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client([1000.0])
    monkeypatch.setattr(bounds, "time", SimpleNamespace(monotonic=lambda: client.now[0]))
    monkeypatch.setattr(bounds, "Topics", lambda *_, **__: client)
    return client


@pytest.fixture
def path() -> str:
    return new_stream("rowtime TIMESTAMP NOT NULL")


@pytest.fixture
def orders(client: Client, path: str) -> rt.KafkaBounds:
    return kafka_bounds(client, path)


def kafka_bounds(client: Client, path: str, producer: str = "app", timeout: str = "240 s") -> rt.KafkaBounds:
    sink = rt.openSink(path, producer=producer, lease=None, linger="1 hour")
    return rt.KafkaBounds(client, "orders", sink, admin=object(), timeout=timeout)


def produce(orders: rt.KafkaBounds, *times: str, partition: int = 0) -> None:
    for time in times:
        orders.produce(time, rowtime=when(time), partition=partition)


def cuts(path: str) -> list[dict[int, int]]:
    return [one.cut.offsets["orders"] for one in open_store(path).cuts() if one.cut]


def floor(path: str) -> int | None:
    return open_store(path).head().floor


def test_a_bound_follows_all_that_the_topic_had_and_asks_once(
    orders: rt.KafkaBounds, client: Client, path: str
) -> None:
    produce(orders, "9:00", "9:01")
    orders.sendRowtimeBound(when("10:00"))
    orders.flush()
    client.topic[1].append("of another producer")
    produce(orders, "10:30")
    orders.sendRowtimeBound(when("11:00"))
    orders.close()
    assert (cuts(path)[:2], client.asked) == ([{0: 3, 1: 0}, {0: 4}], 1)
    assert floor(path) == us("11:00")


def test_a_bound_that_the_broker_does_not_confirm_is_not_sent(
    orders: rt.KafkaBounds, client: Client, path: str
) -> None:
    produce(orders, "9:00")
    client.delivers, began = False, client.now[0]
    with pytest.raises(rt.KafkaUnavailableError, match=r"not acknowledged 1 message\(s\)"):
        orders.sendRowtimeBound(when("10:00"))
    assert client.now[0] - began >= 10
    produce(orders, "9:30")  # the bound was not promised
    client.delivers = True
    orders.sendRowtimeBound(when("10:00"))
    orders.flush()
    assert (cuts(path), floor(path)) == ([{0: 3, 1: 0}], us("10:00"))


def test_after_a_failed_delivery_the_topic_is_asked_again(orders: rt.KafkaBounds, client: Client, path: str) -> None:
    """The message may have arrived nevertheless."""
    orders.sendRowtimeBound(when("9:00"))
    produce(orders, "9:30")
    client.topic[0].append("9:30, though the client says that it failed")
    client.deliver(REFUSED)
    with pytest.raises(rt.KafkaUnavailableError, match="MSG_SIZE_TOO_LARGE"):
        orders.sendRowtimeBound(when("10:00"))
    orders.sendRowtimeBound(when("10:00"))
    orders.close()
    assert (client.asked, cuts(path)[-1]) == (2, {0: 2, 1: 0})


def test_a_message_below_a_bound_is_refused_before_it_is_sent(orders: rt.KafkaBounds, client: Client) -> None:
    orders.sendRowtimeBound(when("10:00"))
    with pytest.raises(rt.LateRowError):
        produce(orders, "9:59")
    assert not client.waiting
    produce(orders, "10:00")
    orders.abandon()
    with pytest.raises(rt.SinkClosedError):
        produce(orders, "10:00")


def test_a_message_below_a_bound_that_is_on_its_way_is_refused(orders: rt.KafkaBounds, client: Client) -> None:
    """Its cut may be behind the message already, or before it."""
    late: list[type] = []

    def flush(_: float) -> None:
        for time in ("9:30", "10:00"):
            try:
                produce(orders, time)
            except rt.LateRowError as error:
                late.append(type(error))
        client.deliver()

    produce(orders, "9:00")
    client.flush = flush
    orders.sendRowtimeBound(when("10:00"))
    assert (late, [value for _, value, _ in client.waiting]) == ([rt.LateRowError], ["10:00"])


def test_a_full_queue_is_waited_for(client: Client, path: str) -> None:
    orders = kafka_bounds(client, path, timeout="10 s")
    client.full = 3
    produce(orders, "9:00")
    assert len(client) == 1
    client.full = 1000
    with pytest.raises(rt.KafkaUnavailableError, match="was full for 10 s"):
        produce(orders, "9:01")
    client.full, client.broken = 0, True
    with pytest.raises(TypeError):
        produce(orders, "9:02")
    orders.sendRowtimeBound(when("10:00"))  # it waits for none of the messages that the client has not taken
    orders.close()


@pytest.mark.parametrize("known", [True, False])
def test_a_producer_that_tells_no_offsets(orders: rt.KafkaBounds, client: Client, known: bool) -> None:
    produce(orders, "9:00", "9:01")
    if known:
        client.deliver()
    for _, _, arrived in client.waiting:
        arrived(None, SimpleNamespace(partition=lambda: 0, offset=lambda: None))
    client.waiting.clear()
    if known:
        orders.sendRowtimeBound(when("10:00"))
    else:
        with pytest.raises(rt.InvalidOptionError, match="acks=0"):
            orders.sendRowtimeBound(when("10:00"))


def test_a_topic_that_was_created_again_has_no_more_bounds(orders: rt.KafkaBounds, client: Client) -> None:
    client.id = "new"
    with pytest.raises(rt.KafkaTopicError, match="deleted and created again"):
        orders.sendRowtimeBound(when("10:00"))


def test_closing_tells_the_cut_behind_the_last_message(orders: rt.KafkaBounds, client: Client, path: str) -> None:
    orders.sendRowtimeBound(when("9:00"))
    produce(orders, "9:30", partition=1)
    with orders:
        pass
    assert cuts(path)[-1] == {0: 1, 1: 1}
    assert floor(path) == us("9:00")
    orders.close()
    with pytest.raises(ZeroDivisionError), kafka_bounds(client, path, "other") as other:
        produce(other, "9:30")
        _ = 1 / 0
    assert cuts(path)[-1] == {0: 1, 1: 1}, "an error abandons the sink"


def test_a_complete_producer_leaves_the_end(orders: rt.KafkaBounds, path: str) -> None:
    orders.close(complete=True)
    assert floor(path) == rt.RowtimeBound.END.floor


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_made_by_fork_produces_nothing(orders: rt.KafkaBounds, client: Client) -> None:
    """The client has no threads there, so that a message would be taken and never sent."""
    produce(orders, "9:00")

    def refused() -> None:
        for call in (lambda: produce(orders, "9:01"), lambda: orders.sendRowtimeBound(when("10:00")), orders.flush):
            with pytest.raises(rt.SinkClosedError, match="This KafkaBounds was opened in process"):
                call()
        assert len(client) == 1

    assert ended(forked(refused)) == [0]
    orders.close()

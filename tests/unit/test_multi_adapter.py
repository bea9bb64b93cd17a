"""Adapters with several producers: each has its own checkpoint and lease, and is taken over by itself."""

import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sample_feed import TwoShops

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.adapter.loading import load
from spark_rowtime.bounds.clock import Status
from spark_rowtime.cli import main
from tests.landed import landed

SCHEMA = "rowtime TIMESTAMP NOT NULL, n BIGINT"


@pytest.fixture
def stream(tmp_path: Path) -> str:
    return f"memory://{tmp_path}"


def rows(path: str) -> list[int]:
    return sorted(landed(path))


def producers(path: str) -> dict[str, Any]:
    return {producer.name: producer for producer in rt.describeStream(path).producers}


def failing(*errors: Exception) -> type[TwoShops]:
    """Berlin is one step ahead of Oslo when the feed fails."""

    class Failing(TwoShops):
        left = list(errors)

        def sent(self, shop: str, n: int) -> None:
            if self.left and (shop, n) == ("Berlin", 2):
                raise self.left.pop(0)

    return Failing


def test_each_producer_has_its_own_checkpoint_and_leaves_at_the_end(stream: str) -> None:
    host(TwoShops, stream)
    assert rows(stream) == [0, 1, 2, 100, 101, 102]
    assert {name: (p.checkpoint, p.status) for name, p in producers(stream).items()} == {
        "Berlin": ("3", Status.LEFT),
        "Oslo": ("3", Status.LEFT),
    }


def test_the_command_hosts_several_producers(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.rowtime")
    result = CliRunner().invoke(main, ["run", "sample_feed:TwoShops", path, "--create"])
    assert (result.exit_code, rows(path)) == (0, [0, 1, 2, 100, 101, 102])


def test_after_a_failure_each_continues_from_its_own_checkpoint(stream: str, caplog: pytest.LogCaptureFixture) -> None:
    waited: list[float] = []
    with caplog.at_level(logging.WARNING):
        host(failing(ConnectionError("the line broke")), stream, delays=[1], wait=waited.append)
    assert (waited, rows(stream)) == ([1], [0, 1, 2, 100, 101, 102])
    assert {name: p.epoch for name, p in producers(stream).items()} == {"Berlin": 2, "Oslo": 2}


def test_what_was_open_is_known_where_the_next_run_does_not_come_to_open_it(stream: str) -> None:
    class Unreachable(failing(ConnectionError("the line broke"))):  # type: ignore[misc]
        def runProducers(self, sinks: rt.Sinks) -> None:
            if not self.left:
                raise ConnectionError("no list of partitions")
            super().runProducers(sinks)

    with pytest.raises(rt.RowtimeError, match=r"no list of partitions\. .*'Berlin' at '3', 'Oslo' at '2'"):
        host(Unreachable, stream, delays=[1], wait=lambda _: None)


def test_after_a_failure_all_hold_the_clock(stream: str) -> None:
    with pytest.raises(rt.RowtimeError, match=r"after 0 restarts .*'Berlin' at '3', 'Oslo' at '2'"):
        host(failing(ConnectionError("the line broke")), stream, delays=[])
    assert {p.status for p in producers(stream).values()} == {Status.ATTACHED}
    assert rt.describeStream(stream).holder == "Oslo"


def test_one_of_the_producers_is_taken_over_and_the_other_goes_on(stream: str) -> None:
    class Rebalanced(TwoShops):
        def run_one(self, shop: Any, first: int) -> None:
            if shop.producer == "Oslo":
                rt.openSink(stream, producer="Oslo")
            try:
                super().run_one(shop, first)
            except rt.ProducerFencedError:
                shop.abandon()

    host(Rebalanced, stream, wait=pytest.fail)
    assert rows(stream) == [0, 1, 2]
    assert {name: (p.epoch, p.status) for name, p in producers(stream).items()} == {
        "Berlin": (1, Status.LEFT),
        "Oslo": (2, Status.ATTACHED),
    }


@pytest.mark.parametrize("disguise", [False, True])
def test_an_adapter_that_does_not_expect_a_takeover_ends(stream: str, disguise: bool) -> None:
    class Fenced(TwoShops):
        def sent(self, shop: str, n: int) -> None:
            if shop == "Oslo":
                rt.openSink(stream, producer="Oslo")
                if disguise:
                    raise ConnectionError("the line broke")

    with pytest.raises(rt.ProducerFencedError, match="Oslo"):
        host(Fenced, stream, delays=[1], wait=pytest.fail)


def test_a_producer_is_taken_over_while_the_host_waits(stream: str) -> None:
    def take_over(_: float) -> None:
        rt.openSink(stream, producer="Oslo")

    with pytest.raises(rt.ProducerFencedError, match=r"'Oslo' of adapter .*epoch 1 here, now 2"):
        host(failing(ConnectionError()), stream, delays=[1], wait=take_over)


def test_a_producer_that_was_closed_may_be_opened_elsewhere(stream: str) -> None:
    class Handing(TwoShops):
        def runProducers(self, sinks: rt.Sinks) -> None:
            sinks.open("Oslo").close()
            rt.openSink(stream, producer="Oslo")
            sinks.open("Berlin")
            raise ConnectionError("the line broke")

    with pytest.raises(rt.RowtimeError, match="after 1 restarts"):
        host(type("Once", (Handing,), {}), stream, delays=[1], wait=lambda _: None)


def test_a_producer_is_open_once(stream: str) -> None:
    rt.createStream(stream, SCHEMA)
    with rt.openSinks(stream) as sinks:
        first = sinks.open("Berlin")
        with pytest.raises(rt.InvalidOptionError, match="'Berlin' is open already"):
            sinks.open("Berlin")
        first.close()
        assert sinks.producers == ()
        sinks.open("Berlin")
        assert sinks.producers == ("Berlin",)


def test_behind_its_block_nobody_opens_a_producer_that_would_hold_the_stream(stream: str) -> None:
    """A thread that an adapter leaves behind, for example."""
    rt.createStream(stream, SCHEMA)
    with rt.openSinks(stream) as sinks:
        sinks.open("main")
    with pytest.raises(rt.SinkClosedError, match=r"'late'.*the block of the sinks has been left"):
        sinks.open("late")
    assert [producer.name for producer in rt.describeStream(stream).producers] == ["main"]


def test_options_come_from_the_adapter_and_from_the_call(stream: str) -> None:
    rt.createStream(stream, SCHEMA)
    with rt.openSinks(stream, lease=None, lateness="1 hour") as sinks:
        berlin, oslo = sinks.open("Berlin"), sinks.open("Oslo", lateness="1 minute")
        for sink in (berlin, oslo):
            sink.sendRow(("2006-09-11T10:00:00Z", 0))
        bounds = [str(sink.getRowtimeBound().time.time()) for sink in (berlin, oslo)]
    assert bounds == ["09:00:00", "09:59:00"]


def test_a_class_with_both_forms_is_refused() -> None:
    class Both(TwoShops):
        def run(self, sink: rt.RowSink) -> None:
            """One form too many."""

    with pytest.raises(rt.InvalidOptionError, match="both run and runProducers"):
        rt.runAdapter(Both, "memory://never")


def test_two_hosts_of_one_adapter_are_refused(stream: str) -> None:
    class Twice(TwoShops):
        def runProducers(self, sinks: rt.Sinks) -> None:
            with pytest.raises(rt.StoreUnavailableError, match="'shops' is already hosted"):
                host(TwoShops, stream, producer="shops")

    host(Twice, stream, producer="shops")


def test_a_class_is_found_by_its_name() -> None:
    assert load("sample_feed:TwoShops") is TwoShops


def test_a_feed_that_gives_producers_away_is_restarted_as_long_as_it_comes_further(stream: str) -> None:
    """Another host has taken Oslo over in the meantime."""
    taken: list[Any] = []

    class Rebalanced(TwoShops):
        def runProducers(self, sinks: Any) -> None:
            berlin, oslo = sinks.open("Berlin"), sinks.open("Oslo")
            berlin.flush(checkpoint=str(int(berlin.checkpoint or 0) + 1))
            for shop in (berlin, oslo):
                shop.abandon()
            taken.append(rt.openSink(stream, producer="Oslo"))
            if int(berlin.checkpoint) < 4:
                raise ConnectionError("the line broke")

    host(Rebalanced, stream, delays=[1], wait=lambda _: None)
    assert producers(stream)["Berlin"].checkpoint == "4"
    for sink in taken:
        sink.abandon()

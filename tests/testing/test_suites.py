"""AdapterSuite and ConsumerSuite: what is right passes, and each mistake is found by the test meant for it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.testing import AdapterSuite, ConsumerSuite


def time(hour: int) -> str:
    return f"2006-09-11T{hour:02d}:00:00Z"


class Meter:
    """Six hours of readings; a checkpoint every second one."""

    schema = "rowtime TIMESTAMP NOT NULL, n INT"

    def run(self, sink: Any) -> None:
        sink.flush(checkpoint=sink.checkpoint or "0")
        for hour in range(int(sink.checkpoint), 6):
            sink.sendRow((time(hour), hour))
            if hour % 2:
                sink.flush(checkpoint=self.checkpoint_after(hour))

    def checkpoint_after(self, hour: int) -> str:
        return str(hour + 1)


class Forgetful(Meter):
    """Resumes a row too late."""

    def checkpoint_after(self, hour: int) -> str:
        return str(hour + 2)


class Unchecked(Meter):
    """Flushes without a checkpoint."""

    def run(self, sink: Any) -> None:
        for hour in range(6):
            sink.sendRow((time(0), hour))
            sink.flush()


class Backwards(Meter):
    sinkOptions = {"onLate": "reject"}

    def run(self, sink: Any) -> None:
        for hour in (3, 1):
            sink.sendRow((time(hour), hour))


class Boundless(Meter):
    sinkOptions = {"rowsImplyBounds": False}


class Shops:
    """Two producers, each with a checkpoint of its own after each row."""

    schema = Meter.schema

    def runProducers(self, sinks: rt.Sinks) -> None:
        shops = [sinks.open("Berlin"), sinks.open("Oslo")]
        for shop in shops:
            shop.flush(checkpoint=shop.checkpoint or "0")
        starts = self.starts(shops)
        for hour in range(6):
            for number, shop in enumerate(shops):
                if hour >= starts[number]:
                    shop.sendRow((time(hour), 10 * number + hour))
                    shop.flush(checkpoint=str(hour + 1))

    def starts(self, shops: list[Any]) -> list[int]:
        return [int(shop.checkpoint) for shop in shops]


class SharedCheckpoint(Shops):
    """Resumes both producers at the checkpoint of the first."""

    def starts(self, shops: list[Any]) -> list[int]:
        return [int(shops[0].checkpoint)] * 2


class TestMeter(AdapterSuite):
    adapter = Meter
    kills = 3


class TestShops(AdapterSuite):
    adapter = Shops
    kills = 4


class SharedCheckpointSuite(TestShops):
    adapter = SharedCheckpoint


class ForgetfulSuite(TestMeter):
    adapter = Forgetful


class UncheckedSuite(TestMeter):
    adapter = Unchecked


class BackwardsSuite(TestMeter):
    adapter = Backwards


class BoundlessSuite(TestMeter):
    adapter = Boundless


def test_an_adapter_that_skips_or_repeats_rows_fails(tmp_path: Path) -> None:
    with pytest.raises(
        AssertionError, match=r"(?s)killed .* call .*\n- 2006-09-11T0\d:00:00Z, \d.*flushes a checkpoint"
    ):
        ForgetfulSuite().test_nothing_is_lost_or_repeated_when_it_is_killed(tmp_path / "lost")
    with pytest.raises(AssertionError, match=r"(?s)killed .* call .*\n\+ 2006-09-11T00:00:00Z, \d"):
        UncheckedSuite().test_nothing_is_lost_or_repeated_when_it_is_killed(tmp_path / "twice")


def test_a_producer_that_resumes_elsewhere_than_at_its_own_checkpoint_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"(?s)killed after call 9: .*\n- 2006-09-11T01:00:00Z, 11"):
        SharedCheckpointSuite().test_nothing_is_lost_or_repeated_when_it_is_killed(tmp_path)


def test_late_rows_and_a_missing_bound_fail(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="1 of its rows were late; declare their order in sinkOptions"):
        BackwardsSuite().test_rows_are_accepted(tmp_path / "late")
    with pytest.raises(AssertionError, match="promised no bound, so no window ever closes"):
        BoundlessSuite().test_a_bound_is_promised(tmp_path / "boundless")


class Totals:
    """Sums per closed hour. Results and checkpoint are one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        saved = json.loads(file.read_text()) if file.exists() else {"closed": [], "open": [], "checkpoint": None}
        self.closed, self.open, self.checkpoint = saved["closed"], saved["open"], saved["checkpoint"]

    def sendRows(self, rows: Any) -> None:
        self.open += [(row["rowtime"].isoformat(), row["n"]) for row in rows.to_pylist()]

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        self.closed += [n for at, n in self.open if at < t.isoformat()]
        self.open = [row for row in self.open if row[0] >= t.isoformat()]

    def flush(self, checkpoint: str | None = None) -> None:
        state = {"closed": self.closed, "open": self.open, "checkpoint": checkpoint}
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(self.file)


class Careless(Totals):
    """Keeps its results with each call, and its checkpoint later."""

    def sendRows(self, rows: Any) -> None:
        super().sendRows(rows)
        self.flush(self.checkpoint)


class TestTotals(ConsumerSuite):
    schema = Meter.schema
    steps = [[(time(3), 3), (time(1), 1)], rt.RowtimeBound(time(2)), [(time(4), 4)], rt.RowtimeBound(time(9))]
    made: type[Totals] = Totals

    def makeConsumer(self, folder: Path) -> Totals:
        return self.made(folder / "totals.json")

    def results(self, folder: Path) -> list[int]:
        return Totals(folder / "totals.json").closed


class Endless(Totals):
    """Counts on, whatever the bound is."""

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        hour = datetime(2006, 9, 11, tzinfo=UTC)
        while hour < t:
            hour += timedelta(microseconds=1) if t.year == 9999 else timedelta(hours=1)


class EndlessSuite(TestTotals):
    made = Endless


def test_a_consumer_that_counts_to_the_end_of_time_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_rowtime.testing.killed_process._SECONDS", 5)
    with pytest.raises(AssertionError, match="drainOnce has not ended after 5 seconds"):
        EndlessSuite().test_it_ends_with_a_complete_stream(tmp_path)


class CarelessSuite(TestTotals):
    made = Careless


def test_a_consumer_that_keeps_rows_before_their_checkpoint_fails(tmp_path: Path) -> None:
    CarelessSuite().test_pieces_give_the_same_results_as_the_whole(tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)killed after call 2.*in one step"):
        (tmp_path / "killed").mkdir()
        CarelessSuite().test_nothing_is_lost_or_repeated_when_it_is_killed(tmp_path / "killed")

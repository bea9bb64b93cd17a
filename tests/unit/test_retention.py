"""Retention as its users see it: settings, named readers, the command."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.errors import DataLostError, InvalidOptionError
from spark_rowtime.store.steady_clock import machine_reading
from tests.commands import printed

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


@pytest.fixture
def orders(tmp_path: Path) -> str:
    """A stream with a row a minute, each in a commit of its own, whose producer has left."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        for minute in range(1, 6):
            sink.sendRow((f"2006-09-11T12:{minute:02d}:00Z", minute))
            sink.flush()
    return path


def numbers(reader: rt.RowReader) -> list[int]:
    return [n for train in reader for n in train.rows.column("n").to_pylist()]


class Consumer:
    """Keeps what it is sent, and the position that comes with it; ends after ``most`` trains."""

    def __init__(self, most: int) -> None:
        self.most, self.checkpoint, self.got = most, None, []

    def sendRows(self, rows) -> None:
        if not self.most:
            raise InterruptedError
        self.most -= 1
        self.got += rows.column("n").to_pylist()

    def sendRowtimeBound(self, t, strict) -> None:
        pass

    def flush(self, checkpoint) -> None:
        self.checkpoint = checkpoint


@pytest.mark.parametrize(
    "how", [{"retainAge": "soon"}, {"retainAge": "-1 s"}, {"retainBytes": -1}, {"retainBytes": "1 GB"}]
)
def test_settings_that_are_of_no_use(tmp_path: Path, how: dict) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(how))):
        rt.createStream(str(tmp_path / "s"), SCHEMA, **how)
    assert list(tmp_path.iterdir()) == []


def test_a_named_reader_is_waited_for(orders: str) -> None:
    """Also while it is not running; a train counts as read when the next is asked for."""
    consumer = Consumer(most=2)
    with rt.openReader(orders, order="arrival", name="alerts") as reader:
        reader._how = type(reader._how)("arrival", max_rows=1)
        with pytest.raises(InterruptedError):
            reader.drainTo(consumer)
    assert "removed 2 rows" in (said := printed("gc", orders, "--age", "0 s"))
    assert "reader 'alerts' needs it" in said
    assert [r.name for r in rt.describeStream(orders).readers] == ["alerts"]
    consumer.most = 9
    with rt.openReader(orders, order="arrival", name="alerts") as reader:
        reader.drainTo(consumer)
    assert consumer.got == [1, 2, 3, 4, 5]
    assert "removed 3 rows" in printed("gc", orders, "--age", "0 s")


def test_a_stored_position_that_is_gone(orders: str) -> None:
    with rt.openReader(orders) as reader:
        start = reader.position
    printed("gc", orders, "--bytes", "300")
    with rt.openReader(orders, start=start) as reader, pytest.raises(DataLostError, match="gc has removed"):
        reader.read()
    with rt.openReader(orders, start="2006-09-11T12:01:00Z") as reader:
        for read in (reader.read, lambda: reader.position, lambda: reader.drainTo(Consumer(most=9))):
            with pytest.raises(DataLostError, match="no longer has the rows from 2006-09-11T12:01:00Z on"):
                read()
    removed = rt.describeStream(orders).removed
    assert 0 < removed < 5
    with rt.openReader(orders) as reader:
        assert numbers(reader) == list(range(1 + removed, 6))


def test_what_the_command_says(orders: str) -> None:
    assert printed("gc", orders) == f"{orders}: removed 0 rows, and 0 files of 0 bytes\n"
    rt.openReader(orders, name="nobody").close()
    said = printed("gc", orders, "--age", "0 s").splitlines()
    assert said[1] == "More rows are old enough, but are kept after seq 0: reader 'nobody' needs it."
    assert printed("describe", orders).splitlines()[-2].split() == ["reader", "seq", "unread", "seen", "ago"]
    assert "No reader 'somebody' is registered; the registered readers are: 'nobody'" in printed(
        "gc", orders, "--forget", "somebody", code=1
    )
    assert "removed 5 rows, and 1 files" in printed("gc", orders, "--age", "0 s", "--forget", "nobody")
    assert "removed   the oldest 5 rows" in printed("describe", orders)
    assert printed("check", orders).endswith("is whole\n")


def test_force(orders: str) -> None:
    rt.openReader(orders, name="slow").close()
    assert "removed 5 rows" in printed("gc", orders, "--age", "0 s", "--force")


def test_created_with_retention(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    printed("create", path, "--schema", SCHEMA, "--retain-age", "0 s", "--retain-bytes", "1000")
    with rt.openSink(path) as sink:
        for minute in range(1, 4):
            sink.sendRow((f"2006-09-11T12:{minute:02d}:00Z", minute))
            sink.flush()
    assert rt.describeStream(path).removed > 0


DAY = 86_400_000_000


def later(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """From now on the machine has run for so many days more."""
    boot, micros = machine_reading()
    monkeypatch.setattr("spark_rowtime.store.steady_clock.time.monotonic_ns", lambda: int(micros + days * DAY) * 1000)
    assert machine_reading() == (boot, int(micros + days * DAY))


def test_a_reader_that_blocks_for_long_is_warned_of(
    orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, there = tmp_path / "my gone" / "sources" / "0", tmp_path / "there" / "sources" / "0"
    (tmp_path / "there").mkdir()
    for name in (gone.as_uri(), there.as_uri(), "auditor"):
        rt.openReader(orders, name=name).close()
    flags = {r.name: (r.unread, r.checkpointGone) for r in rt.describeStream(orders).readers}
    assert flags == {gone.as_uri(): (5, True), there.as_uri(): (5, False), "auditor": (5, False)}
    (warning,) = [line for line in printed("describe", orders).splitlines() if line.startswith("warning")]
    assert "last seen 0 days ago, and its checkpoint is gone" in warning
    assert f"--forget {gone.as_uri()}" in warning

    later(monkeypatch, 8.5)
    with rt.openReader(orders, name="auditor") as reader:
        reader.read()
    assert printed("describe", orders).count("last seen 8 days ago") == 2
    said = printed("gc", orders, "--age", "0 s", "--forget-older", "8 days").splitlines()
    assert sum("forgot reader 'file:" in line for line in said) == 2
    assert "removed 0 rows" in said[2]
    assert [r.name for r in rt.describeStream(orders).readers] == ["auditor"]
    later(monkeypatch, 2)
    assert "reader 'auditor': it was last seen 2 days ago" in printed("gc", orders, "--age", "0 s")


def test_a_reader_that_waits_says_that_it_still_reads(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though nothing comes: --forget-older must not take it for one that is gone."""
    with rt.openReader(orders, name="tail") as reader:
        assert numbers(reader) == [1, 2, 3, 4, 5]
        later(monkeypatch, 3)
        reader._registration._kept_at = -1e9
        assert reader.read() is None
        (tail,) = rt.describeStream(orders).readers
        assert (tail.unread, (datetime.now(UTC) - tail.seen).total_seconds() < 60) == (0, True)


def test_describe_shows_a_dead_producer_as_detached(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease has ended, and nobody has polled since; to look changes nothing."""
    dead, alive = (
        rt.openSink(orders, producer=name, lease=lease) for name, lease in (("dead", "30 s"), ("alive", None))
    )
    alive.sendRowtimeBound("2006-09-11T13:00:00Z")
    alive.flush()
    with dead._lock:
        dead._scheduler.stop()
    assert rt.describeStream(orders).holder == "dead"
    later(monkeypatch, 1)
    info = rt.describeStream(orders)
    assert (info.holder, info.bound) == ("alive", rt.RowtimeBound("2006-09-11T13:00:00Z"))
    assert {p.name: p.status.value for p in info.producers}["dead"] == "detached"
    assert "held by alive" in printed("describe", orders)
    assert rt.describeStream(orders).seq == info.seq, "nothing was written"
    alive.close()


def test_a_sink_whose_lease_ended_joins_again_and_says_so(
    orders: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after its container stood still: it is healthy, and its next rows are not late."""
    quiet = rt.openSink(orders, producer="quiet", lease="30 s")
    busy = rt.openSink(orders, producer="busy", lease=None)
    busy.sendRowtimeBound("2006-09-11T13:00:00Z")
    busy.flush()
    with quiet._lock:
        quiet._scheduler.stop()
    later(monkeypatch, 1)
    with rt.openReader(orders) as reader:
        list(reader)
    with quiet._lock, caplog.at_level("WARNING"):
        quiet._scheduler.run_due()
    assert "The lease of producer 'quiet' ended" in caplog.text
    assert "its rows before 2006-09-11T13:00:00Z are late now" in caplog.text
    busy.sendRowtimeBound("2006-09-11T15:00:00Z")
    busy.flush()
    quiet.sendRow(("2006-09-11T14:00:00Z", 6))
    quiet.flush()
    assert rt.describeStream(orders).holder == "quiet"
    for sink in (quiet, busy):
        sink.close()


@pytest.mark.parametrize("start", ["latest", "2006-09-11T12:00:00Z"])
def test_a_named_drain_that_is_started_again_continues_at_its_sink(orders: str, start: str) -> None:
    """Retention keeps what is unread while it is away, and while it starts; what is read may be removed."""
    sink = Consumer(most=99)
    with rt.openReader(orders, name="lake", start=start) as reader:
        send(orders, 13, 6)
        reader.drainTo(sink)
        before = list(sink.got)
        reader.read()
    send(orders, 14, 7)
    printed("gc", orders, "--age", "0 s")
    with rt.openReader(orders, name="lake", start=start) as reader:
        printed("gc", orders, "--age", "0 s")
        reader.drainTo(sink)
    assert (before[-1], sink.got) == (6, [*before, 7])


def send(path: str, hour: int, number: int) -> None:
    """A row, and the bound behind it."""
    with rt.openSink(path, producer="later") as feed:
        feed.sendRow((f"2006-09-11T{hour}:00:00Z", number))
        feed.sendRowtimeBound(f"2006-09-11T{hour}:30:00Z")

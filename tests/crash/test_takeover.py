"""One name, several processes: fencing under load, and what comes back after its lease."""

import random
from collections.abc import Callable
from pathlib import Path

import spark_rowtime as rt
from spark_rowtime.bounds.clock import Status
from spark_rowtime.store.local import open_local
from spark_rowtime.store.steady_clock import Reading, machine_reading
from tests.crash import feeds
from tests.crash.checks import PATIENCE, check_log, numbers
from tests.crash.tally import Tally
from tests.crash.victims import Victim, how_many
from tests.store.streams import infos

FEW = 10
STEPS = 200


def test_two_processes_take_the_name_from_each_other(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """Each in the middle of its sending: every call of the fenced one fails, nothing of it lands."""
    path, dice, line = str(tmp_path / "s"), random.Random(1), tally("takeover from a producer that sends")
    rt.createStream(path, feeds.DDL)
    holder, next_one = (Victim(feeds.contend, path) for _ in range(2))
    holder.pipe.send(0)
    store = open_local(path)
    for turn in range(1, how_many(FEW) + 1):
        assert holder.listen(PATIENCE, len(holder.heard) + 1 + dice.randrange(5))
        next_one.pipe.send(turn)
        assert what_failed(holder) == ["ProducerFencedError"] * 5
        line.fault()
        holder, next_one = next_one, holder
    assert holder.listen(PATIENCE, len(holder.heard) + 1)
    store.attach("feed", "the test", "{}")
    assert what_failed(holder) == ["ProducerFencedError"] * 5
    said = [*holder.heard, *next_one.heard]
    for victim in (holder, next_one):
        victim.kill()
    acknowledged = [n for what, rows in said if what == "flushed" for n in rows]
    line.account(numbers(store), acknowledged, acknowledged)
    check_log(store)
    (feed,) = infos(store)
    assert feed.checkpoint == str(max(acknowledged))
    assert feed.epoch == how_many(FEW) + 2


def what_failed(fenced: Victim) -> list[str]:
    """How each call of the sink ended, once it was fenced."""
    while fenced.heard[-1][0] != "fenced":
        assert fenced.listen(PATIENCE, len(fenced.heard) + 1)
    return fenced.heard[-1][1]


def test_late_after_its_lease_is_rejected_and_counted(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """The stream does not wait longer than the lease: what lies behind it by then is rejected, not lost, not twice."""
    path, whole, line = str(tmp_path / "s"), str(tmp_path / "whole"), tally("return after the lease")
    assert Victim(feeds.hosted, "InOrder", whole, STEPS).end()[1] == 0
    unkilled = open_local(whole)
    everything = [*numbers(unkilled), *unkilled.rejected().column("n").to_pylist()]
    rt.createStream(path, feeds.DDL)
    with rt.openSink(path, producer="other", lease=None) as other:
        killed = Victim(feeds.hosted_until, "InOrder", path, STEPS, 5)
        assert killed.listen(PATIENCE, 5)
        assert killed.kill()
        other.sendRowtimeBound(feeds.moment(STEPS * 9))
        other.flush()
        store = open_local(path)
        assert store.head().floor is None or store.head().floor < rt.RowtimeBound(feeds.moment(STEPS * 9)).floor
        boot, now = machine_reading()  # the clock of a reader, once the lease has ended
        store.steady = lambda: Reading(boot, now + (feeds.LEASE_SECONDS + 1) * feeds.SECOND)
        assert store.expire()
        assert store.head().floor == rt.RowtimeBound(feeds.moment(STEPS * 9)).floor
        assert Victim(feeds.hosted, "InOrder", path, STEPS).end()[1] == 0
    line.fault()
    feed = {p.name: p for p in infos(store)}["feed"]
    late = store.rejected().column("n").to_pylist()
    line.account([*numbers(store), *late], everything, everything)
    assert (feed.status, feed.accepted, feed.rejected) == (Status.LEFT, len(numbers(store)), len(late))
    assert len(late) > unkilled.rejected().num_rows
    check_log(store)

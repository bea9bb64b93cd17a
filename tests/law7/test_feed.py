"""The feed does what its schedule says, with all bounds and with fewer."""

from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.law7.feed import Feed, LeftOut
from tests.law7.schedule import Idle, Open, Promise, Row, Schedule, Send
from tests.streams import bound

QUIET_COMES_BACK = 5
EVENTS = (
    Open("a", "quiet", ()),
    Open("a", "busy", ()),
    Send("a", "quiet", (Row("6:00", 1, 0, 0),)),
    Send("a", "busy", (Row("7:00", 2, 0, 0),)),
    Idle("a", "quiet"),
    Send("a", "quiet", (), Promise("7:30", False)),
)


@pytest.mark.parametrize("left_out", [LeftOut(), LeftOut(frozenset({QUIET_COMES_BACK}))], ids=["all", "fewer"])
def test_who_is_idle_does_not_depend_on_the_bounds_that_are_left_out(tmp_path: Path, left_out: LeftOut) -> None:
    feed = Feed(tmp_path, Schedule((("a", (("idleTimeout", "1 day"),)),), EVENTS), left_out)
    bounds, statuses = [], []
    for number, event in enumerate(EVENTS):
        feed.apply(number, event)
        stream = rt.describeStream(feed.paths["a"])
        bounds.append(stream.bound)
        statuses.append({p.name: p.status.value for p in stream.producers}.get("quiet"))
    feed.close()
    assert bounds[-3:] == [bound("6:00"), bound("7:00"), bound("7:00")]
    assert statuses[-3:] == ["attached", "idle", "attached"]


KEPT_BY_A_BOUND = (
    Open("a", "p", (("inOrderPer", "k"), ("keyIdle", "15 minutes"))),
    Send("a", "p", (Row("6:00", 1, 1, 0),), Promise("6:15", False)),
    Send("a", "p", (Row("6:20", 2, 0, 0),)),
    Send("a", "p", (Row("6:16", 3, 1, 0),)),
)


@pytest.mark.parametrize("left_out", [LeftOut(), LeftOut(frozenset({1}))], ids=["all", "fewer"])
def test_which_values_are_idle_does_not_depend_on_bounds_that_are_left_out(tmp_path: Path, left_out: LeftOut) -> None:
    feed = Feed(tmp_path, Schedule((("a", ()),), KEPT_BY_A_BOUND), left_out)
    for number, event in enumerate(KEPT_BY_A_BOUND):
        feed.apply(number, event)
    feed.close()
    assert feed.accepted() == {1, 2, 3}

"""The count of rows that wait, kept up to date, is the count of rows that wait."""

from hypothesis import given
from hypothesis import strategies as st
from test_release import ACTIONS, TIMES, World
from unit_support import new_sink, new_stream, rows

from spark_rowtime.reader.release import Release
from spark_rowtime.spark.held_back_rows import HeldBackRows
from spark_rowtime.store import open_store

WAYS = st.builds(
    Release, st.sampled_from(["arrival", "rowtime"]), st.none() | st.integers(0, 15), st.none() | TIMES, st.none()
)


@given(WAYS, ACTIONS)
def test_it_is_what_is_committed_and_not_handed_out(way: Release, actions) -> None:
    world, held = World(way), HeldBackRows(way)
    for action in actions:
        if action[0] != "step":
            world.act(action)
            continue
        latest = way.latest(world.store)
        read = set(world.region(latest))
        waiting = [time for _, time, label in world.log() if (time, label) not in read and time >= (way.since or 0)]
        assert held.rows(world.store, latest) == len(waiting)


def test_a_look_costs_what_is_new() -> None:
    path = new_stream()
    store, way = open_store(path), Release("rowtime")
    slow, fast = new_sink(path, "slow"), new_sink(path, "fast")
    slow.sendRowtimeBound("2006-09-11T00:00:00Z")
    for minute in range(30):
        fast.sendRows(rows(f"10:{minute:02}"))
    held = HeldBackRows(way)
    assert held.rows(store, way.latest(store)) == 30
    fast.sendRows(rows("10:30"))
    slow.sendRowtimeBound("2006-09-11T10:00:30Z")
    asked, real = [], store.slices
    store.slices = lambda after, upto: asked.extend(found := real(after, upto)) or found
    assert held.rows(store, way.latest(store)) == 30
    assert len(asked) <= 4, "the new train and the released one, not the 29 that wait"

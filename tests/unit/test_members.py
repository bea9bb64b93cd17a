"""SortedMembers: the law of its docstring."""

from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.bounds.members import COUNTING, ProducerClock, SortedMembers, Status

NAMES = st.sampled_from(["a", "b", "c", "d"])
CLOCKS = st.just(ProducerClock(Status.EXPECTED, None)) | st.builds(
    ProducerClock, st.sampled_from([Status.ATTACHED, Status.IDLE]), st.none() | st.integers(1, 5)
)
CHANGES = st.lists(st.tuples(NAMES, st.none() | CLOCKS), max_size=30)


@given(st.dictionaries(NAMES, CLOCKS), CHANGES)
def test_in_step(first, changes):
    """in step: ``weakest``, ``strongest`` and ``up_to`` are what a scan of the mapping gives."""
    members, plain = SortedMembers(first), dict(first)
    for name, clock in changes:
        if clock is None:
            members.remove(name)
            plain.pop(name, None)
        else:
            members[name] = plain[name] = clock
        counting = sorted(
            (c.floor or 0, c.status is Status.ATTACHED, n) for n, c in plain.items() if c.status in COUNTING
        )
        assert members == plain
        assert bool(members) == bool(plain)
        assert members.weakest() == ((counting[0][-1], plain[counting[0][-1]].floor) if counting else None)
        assert members.strongest() == (plain[counting[-1][-1]].floor if counting else None)
        for most in range(6):
            assert members.up_to(most) == [n for floor, _, n in counting if floor <= most]


@given(st.dictionaries(NAMES, CLOCKS), CHANGES)
def test_a_copy_stays(first, changes):
    members = SortedMembers(first)
    copy = members.copy()
    for name, clock in changes:
        members[name] = clock or ProducerClock(Status.IDLE, None)
    assert copy == first
    assert copy.weakest() == SortedMembers(first).weakest()

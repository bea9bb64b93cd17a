"""Cuts that were folded: the laws of ``folded``, over random cuts of two producers."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.bounds.unreached_cuts import UnreachedCuts
from spark_rowtime.store.cut_folding import FOLD_EVENTS, fold_due, folded, passed, reached_by_all
from spark_rowtime.store.position import Position
from spark_rowtime.store.snapshot import READS_STREAM, READS_TOPIC, READS_UNKNOWN, ReaderInfo

STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.none() | st.dictionaries(st.integers(0, 1), st.integers(0, 2), min_size=1),
        st.none() | st.integers(1, 4),
        st.booleans(),
    ),
    max_size=10,
)
"""Of each bound: whose it is, by how much its cut is further (None: it has none), by how much the floor rises."""
GRID = [{"orders": {0: one, 1: other}} for one in range(8) for other in range(8)]
UNHELD = 1 << 40


def logged(steps: Sequence[tuple[str, dict[int, int] | None, int | None, bool]]) -> list[LoggedCut]:
    """A log as producers write it: cuts never go back, and the first one names all that it knows."""
    ends: dict[str, dict[int, int]] = {}
    floors: dict[str, int] = {}
    found = []
    for seq, (who, more, rise, whole) in enumerate(steps, 1):
        floor = floors.get(who)
        floors[who] = floors.get(who, 0) + (rise or 0)
        if more is None:
            found.append(LoggedCut(seq, who, floors[who], None))
            continue
        known = ends.setdefault(who, {})
        known |= {p: known.get(p, 0) + by for p, by in more.items()}
        cut = dict(known) if whole else {p: known[p] for p in more}
        found.append(LoggedCut(seq, who, floor, TopicCut({"orders": cut}, {}, whole)))
    return found


def floors(cuts: Sequence[LoggedCut], seq: int) -> list[int]:
    """Where the bound is held at each of the offsets."""
    found_at = UnreachedCuts()
    for one in cuts:
        found_at.add(one)
    found = [found_at.weakest(seq, offsets) for offsets in GRID]
    return [UNHELD if one is None else one.floor or 0 for one in found]


@given(STEPS, st.integers(0, 10))
def test_weaker(steps: list[tuple[str, dict[int, int] | None, int | None, bool]], first: int) -> None:
    cuts = logged(steps)
    one_each = [*folded(cuts[:first]), *cuts[first:]]
    for seq in range(11):
        assert all(now <= before for now, before in zip(floors(one_each, seq), floors(cuts, seq), strict=True))


@given(STEPS, st.integers(0, 10))
def test_passed(steps: list[tuple[str, dict[int, int] | None, int | None, bool]], first: int) -> None:
    cuts = logged(steps)
    one_each = [*folded(cuts[:first]), *cuts[first:]]
    reached = [all(c.cut is None or c.cut.reached(offsets) for c in cuts[:first]) for offsets in GRID]
    for seq in range(11):
        pairs = zip(floors(one_each, seq), floors(cuts, seq), reached, strict=True)
        assert all(now == before for now, before, all_reached in pairs if all_reached)


@given(STEPS, st.integers(0, 10))
def test_again(steps: list[tuple[str, dict[int, int] | None, int | None, bool]], first: int) -> None:
    cuts = logged(steps)
    assert folded([*folded(cuts[:first]), *cuts[first:]]) == folded(cuts)


@given(STEPS, st.integers(0, 10))
def test_what_a_query_has_passed_is_what_it_has_reached(
    steps: list[tuple[str, dict[int, int] | None, int | None, bool]], seq: int
) -> None:
    """The event before the first cut that is not reached, whoever has sent it."""
    found_at, cuts = UnreachedCuts(), logged(steps)
    for one in cuts:
        found_at.add(one)
    for offsets in GRID:
        ends: dict[str, TopicCut] = {}
        least = seq
        for one in cuts:
            if one.cut is not None:
                ends[one.producer] = ends[one.producer].merged(one.cut) if one.producer in ends else one.cut
                if one.seq <= seq and not ends[one.producer].reached(offsets):
                    least = min(least, one.seq - 1)
        assert found_at.passed(seq, offsets) == least


def test_when_and_up_to_where() -> None:
    assert [last for last in range(1, 2 * FOLD_EVENTS + 2) if fold_due(last, 1)] == [FOLD_EVENTS, 2 * FOLD_EVENTS]
    assert fold_due(FOLD_EVENTS + 1, 3)
    assert not fold_due(FOLD_EVENTS, 0)


def test_who_lets_cuts_go() -> None:
    """Queries beside topics, and one of them is that of a user who may write."""

    def reader(seq: int, reads: str, trusted: bool = True) -> ReaderInfo:
        return ReaderInfo("", Position(seq, None, None), 0, reads, trusted)

    query, other, stranger = reader(7, READS_TOPIC), reader(5, READS_TOPIC), reader(3, READS_TOPIC, trusted=False)
    rows, old = reader(2, READS_STREAM), reader(4, READS_UNKNOWN)
    given = [[], [query, other], [query, rows], [query, old], [old], [stranger], [query, stranger]]
    assert list(map(passed, given)) == [0, 5, 7, 4, 0, 0, 3]
    assert [passed(one, trusted=False) for one in given] == [0, 5, 7, 4, 0, 3, 3]
    assert (reached_by_all([query, rows], 7), reached_by_all([query], 5), reached_by_all([], 0)) == (2, 5, 0)

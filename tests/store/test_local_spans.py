"""The train index finds what a scan of all trains finds, for spans of every width."""

from hypothesis import given
from hypothesis import strategies as st

from spark_rowtime.store.difference import between
from spark_rowtime.store.local.format import TABLES
from spark_rowtime.store.local.index_check import slices_between
from spark_rowtime.store.position import Position
from spark_rowtime.store.widths import width_class
from spark_rowtime.types.timestamps import LARGEST
from tests.store.catalogs import MemoryCatalog

TIMES = st.integers(1, 9) | st.integers(1, 300) | st.integers(1, 2**40) | st.integers(1, LARGEST)
SPANS = st.lists(st.tuples(TIMES, TIMES).map(sorted), max_size=25)
CUTS = st.none() | TIMES
POSITIONS = st.builds(Position, st.integers(0, 26), CUTS, st.none())


@given(least=TIMES, largest=TIMES)
def test_the_class_of_a_span(least: int, largest: int) -> None:
    least, largest = sorted((least, largest))
    k = width_class(least, largest)
    assert largest - least < 4**k
    assert k == 0 or largest - least >= 4 ** (k - 1)


@given(spans=SPANS, after=POSITIONS, upto=POSITIONS)
def test_the_index_finds_what_a_scan_finds(spans: list[list[int]], after: Position, upto: Position) -> None:
    catalog = MemoryCatalog(TABLES, spans)
    found = slices_between(catalog, after, upto)
    expected = [(i, *s) for i, s in enumerate(spans, 1) if between(after, upto, i, *s)]
    assert [(piece.seq, piece.least, piece.largest) for piece in found] == expected


@given(cut=st.integers(100, 300), span=st.tuples(TIMES, TIMES).map(sorted))
def test_the_widest_of_a_class_are_found(cut: int, span: list[int]) -> None:
    """The span that begins just below the cut, and is as wide as its class allows."""
    widest = 4 ** width_class(*span) - 1
    catalog = MemoryCatalog(TABLES, [[cut - 1, min(cut - 1 + widest, LARGEST)]])
    assert len(slices_between(catalog, Position(1, cut - 1, None), Position(1, cut, None))) == 1


def test_a_million_unreleased_trains_are_not_scanned() -> None:
    """Counts SQLite's steps, not time: as many for 40,000 trains beyond the cut as for 40."""
    steps = []
    for count in (40, 40_000):
        catalog = MemoryCatalog(TABLES, [[1000 * i, 1000 * i + i % 7] for i in range(1, count)])
        after, upto = Position(count, 5_000, None), Position(count, 9_000, None)
        steps.append(catalog.steps(lambda c=catalog, a=after, u=upto: slices_between(c, a, u)))
    assert steps[1] <= steps[0] + 5

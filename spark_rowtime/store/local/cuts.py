"""The cuts of Kafka topics in the catalog, each with the event of its bound."""

from collections.abc import Iterable, Iterator
from typing import Any

from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.store import cut_folding
from spark_rowtime.store.cut_folding import folded, portion
from spark_rowtime.store.local import meta
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact, sealed

_COLUMNS = "SELECT seq, producer, hold, cut, number, seal FROM topic_cuts"
_END = "SELECT producer, whole, parts, last, seal FROM cut_ends WHERE producer = ?"
_LEFT = "SELECT COUNT(*), MAX(number), MIN(seq) FROM topic_cuts WHERE producer = ?"
_PARTS = "SELECT COUNT(*) FROM topic_cuts WHERE producer = ? AND seq >= ?"
_FOLDED = "cutsFolded"
"""The row of ``meta`` with the number of cuts before those that are there."""
_GONE = "cuts are missing from the table topic_cuts"


def add(catalog: Catalog, logged: LoggedCut) -> None:
    """Stores a cut. Call it in a transaction, with its event."""
    number = _newest(catalog) + 1
    _insert(catalog, logged, number)
    whole, parts = _end(catalog, logged.producer) or (None, 0)
    if logged.cut is not None and logged.cut.whole:
        whole, parts = logged.seq, 0
    end = (logged.producer, whole, parts + 1, number)
    catalog.execute("INSERT OR REPLACE INTO cut_ends VALUES (?, ?, ?, ?, ?)", sealed(end))


def _insert(catalog: Catalog, logged: LoggedCut, number: int) -> None:
    values = (logged.seq, logged.producer, logged.floor, logged.cut and logged.cut.text(), number)
    catalog.execute("INSERT INTO topic_cuts VALUES (?, ?, ?, ?, ?, ?)", sealed(values))


def fold(catalog: Catalog, upto: int) -> bool:
    """Folds the first cuts up to the event ``upto``, a portion of them. Returns whether there may be more of them.

    Call it in a transaction. The numbers of the cuts behind them stay.
    """
    (many,) = catalog.execute("SELECT COUNT(*) FROM cut_ends").fetchone()
    found = between(catalog, 0, upto, portion(many))
    kept = folded(found)
    if len(kept) in (0, len(found)):
        return False
    last, number = found[-1].seq, _gone(catalog) + len(found)
    catalog.execute("DELETE FROM topic_cuts WHERE seq <= ?", (last,))
    meta.put(catalog.execute, **{_FOLDED: number - len(kept)})
    for place, logged in enumerate(kept, number - len(kept) + 1):
        _insert(catalog, logged, place)
    for producer in {logged.producer for logged in found}:
        _correct_end(catalog, producer, last)
    return True


def _correct_end(catalog: Catalog, producer: str, folded_upto: int) -> None:
    """Corrects the end of a producer's cuts, of which those up to an event were folded."""
    count, number, first = catalog.execute(_LEFT, (producer,)).fetchone()
    whole, _ = _end(catalog, producer) or (None, 0)
    if not count:
        catalog.execute("DELETE FROM cut_ends WHERE producer = ?", (producer,))
        return
    if whole is None or whole <= folded_upto:
        whole = first if first <= folded_upto else None
    (parts,) = catalog.execute(_PARTS, (producer, whole or 0)).fetchone()
    end = (producer, whole, parts, number)
    catalog.execute("INSERT OR REPLACE INTO cut_ends VALUES (?, ?, ?, ?, ?)", sealed(end))


def _newest(catalog: Catalog) -> int:
    """Returns the number of the newest cut."""
    row = catalog.execute(f"{_COLUMNS} ORDER BY seq DESC LIMIT 1").fetchone()
    return _gone(catalog) if row is None else int(intact(row, "topic_cuts")[4])


def _gone(catalog: Catalog) -> int:
    """Returns how many cuts there were before those that are there."""
    return int(meta.get(catalog.execute, _FOLDED) or 0)


def _end(catalog: Catalog, producer: str) -> tuple[int | None, int] | None:
    """Returns the event of the producer's last whole cut, and how many cuts it has had from there on."""
    row = catalog.execute(_END, (producer,)).fetchone()
    return None if row is None else intact(row, "cut_ends")[1:3]


def there(catalog: Catalog) -> bool:
    """Returns whether there is any cut."""
    return catalog.execute("SELECT 1 FROM cut_ends LIMIT 1").fetchone() is not None


def between(catalog: Catalog, after: int, upto: int, limit: int = 0) -> list[LoggedCut]:
    """Returns the first cuts from the event ``after + 1`` to ``upto``. Call it in a transaction.

    ``limit``: how many at most; 0: PORTION_CUTS. Raises Damaged if one of them is missing.
    """
    most = limit or cut_folding.PORTION_CUTS
    earlier = catalog.execute(f"{_COLUMNS} WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (after,)).fetchone()
    number = _gone(catalog) if earlier is None else int(intact(earlier, "topic_cuts")[4])
    rows = catalog.execute(f"{_COLUMNS} WHERE seq > ? ORDER BY seq LIMIT ?", (after, most + 1)).fetchall()
    _require_all(catalog, number, rows, most)
    return [logged for logged in _opened(rows[:most]) if logged.seq <= upto]


def _require_all(catalog: Catalog, number: int, rows: list[tuple[Any, ...]], most: int) -> None:
    """Raises Damaged if a cut is missing: their numbers have no gaps, and the last number is also in ``cut_ends``."""
    if any(row[4] != number + n for n, row in enumerate(rows, 1)):
        raise Damaged(_GONE)
    (last,) = catalog.execute("SELECT COALESCE(MAX(last), 0) FROM cut_ends").fetchone()
    if len(rows) <= most and number + len(rows) != last:
        raise Damaged(_GONE)


def producers(catalog: Catalog) -> list[str]:
    """Returns the producers that have ever sent a cut."""
    return [name for (name,) in catalog.execute("SELECT producer FROM cut_ends ORDER BY producer")]


def everyone(catalog: Catalog) -> Iterator[LoggedCut]:
    """Yields all cuts. Call it in a transaction."""
    after, end = 0, 1 << 62
    while found := between(catalog, after, end):
        yield from found
        after = found[-1].seq


def last(catalog: Catalog, producer: str) -> list[LoggedCut]:
    """Returns the producer's last whole cut, and all that it sent after it. Call it in a transaction."""
    whole, parts = _end(catalog, producer) or (None, 0)
    if whole is None:
        return []
    rows = catalog.execute(f"{_COLUMNS} WHERE producer = ? AND seq >= ? ORDER BY seq", (producer, whole)).fetchall()
    if len(rows) != parts:
        raise Damaged(_GONE)
    return list(_opened(rows))


def _opened(rows: Iterable[tuple[Any, ...]]) -> Iterator[LoggedCut]:
    for row in rows:
        seq, producer, floor, text, _ = intact(row, "topic_cuts")
        try:
            yield LoggedCut(seq, producer, floor, None if text is None else TopicCut.of_text(text))
        except (ValueError, KeyError, AttributeError) as error:
            raise Damaged(f"the cut of event {seq} cannot be read ({error!r})") from error

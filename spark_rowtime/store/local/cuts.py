"""The cuts of Kafka topics in the catalog, each with the event of its bound."""

from collections.abc import Iterable, Iterator

from spark_rowtime.bounds.topic_cut import LoggedCut, TopicCut
from spark_rowtime.store.local.catalog import Catalog
from spark_rowtime.store.local.seal import Damaged, intact, seal

PORTION_CUTS = 10_000
"""How many cuts are read at a time."""
_COLUMNS = "SELECT seq, producer, hold, cut, whole, seal FROM topic_cuts"
_LAST_WHOLE = "SELECT MAX(seq) FROM topic_cuts WHERE producer = ? AND whole"


def add(catalog: Catalog, logged: LoggedCut) -> None:
    """Stores a cut. Call it in a transaction, with its event."""
    whole = int(logged.cut is not None and logged.cut.whole)
    values = (logged.seq, logged.producer, logged.hold, logged.cut and logged.cut.text(), whole)
    catalog.execute("INSERT INTO topic_cuts VALUES (?, ?, ?, ?, ?, ?)", (*values, seal(values)))


def between(catalog: Catalog, after: int, upto: int) -> list[LoggedCut]:
    """Returns the first cuts from the event ``after + 1`` to ``upto``, at most PORTION_CUTS."""
    rows = catalog.execute(f"{_COLUMNS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (after, upto, PORTION_CUTS))
    return list(_opened(rows))


def everyone(catalog: Catalog) -> Iterator[LoggedCut]:
    """Yields all cuts."""
    return _opened(catalog.execute(f"{_COLUMNS} ORDER BY seq"))


def there(catalog: Catalog) -> bool:
    """Returns whether there is any cut."""
    return catalog.execute("SELECT 1 FROM topic_cuts LIMIT 1").fetchone() is not None


def last(catalog: Catalog, producer: str) -> list[LoggedCut]:
    """Returns the producer's last whole cut, and all that it sent after it."""
    (whole,) = catalog.execute(_LAST_WHOLE, (producer,)).fetchone()
    if whole is None:
        return []
    return list(_opened(catalog.execute(f"{_COLUMNS} WHERE producer = ? AND seq >= ? ORDER BY seq", (producer, whole))))


def _opened(rows: Iterable[tuple[int, str, int | None, str | None, int, int]]) -> Iterator[LoggedCut]:
    for row in rows:
        seq, producer, hold, text, _ = intact(row, "topic_cuts")
        try:
            yield LoggedCut(seq, producer, hold, None if text is None else TopicCut.of_text(text))
        except (ValueError, KeyError, AttributeError) as error:
            raise Damaged(f"the cut of event {seq} cannot be read ({error!r})") from error

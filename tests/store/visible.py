"""Everything that is visible of a stream, to compare two stores, or one store at two moments."""

from collections import Counter
from typing import Any

from spark_rowtime.store.base import Store
from spark_rowtime.types.schema import rowtime_micros
from tests.store.streams import WHOLE, infos, place


def visible(store: Store) -> dict[str, Any]:
    """Everything that the store shows, except its path and how it keeps rows."""
    horizon = store.horizon()
    trains = store.slices(place(horizon.seq), WHOLE)
    return {
        "horizon": horizon,
        "readers": store.snapshot().readers,
        "producers": infos(store),
        "clock": store.snapshot().logged_clock,
        "bounds": store.bounds(),
        "rejected": store.rejected(),
        "cuts": [*store.cuts(), *(store.last_cuts(producer.name) for producer in infos(store))],
        "heads": [store.at(seq) for seq in range(horizon.seq, store.head().seq + 1)],
        "rows": [(p.seq, p.producer, p.least, p.largest, store.read(p)) for p in trains],
    }


def rows_of(state: dict[str, Any]) -> Counter[tuple[str, int]]:
    """The producer and the rowtime of each row in a result of ``visible``."""
    return Counter((name, time) for _, name, _, _, train in state["rows"] for time in rowtime_micros(train).to_pylist())

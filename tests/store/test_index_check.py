"""A reader does not rely on an index that lacks a train; and it looks at no more of it than it needs."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.store.local import LocalStore, index_check
from tests.store.streams import Writer, place, read

Open = Callable[..., LocalStore]


def filled(open_here: Open) -> LocalStore:
    store = open_here()
    writer = Writer(store, "a")
    for second in range(1, 200):
        writer.send([second], floor=second)
    return store


def test_it_looks_at_what_is_new_only(open_here: Open) -> None:
    """At a cut near the end of a log in order it compares what lies behind that, and later what was added."""
    store = filled(open_here)
    compared: list[tuple[int, int]] = []
    compare = store._indexed._compare

    def counted(after: int, upto: int, begin: int) -> None:
        compared.append((after, upto))
        compare(after, upto, begin)

    store._indexed._compare = counted  # type: ignore[method-assign]
    store.slices(place(150, cut=148), place(160, cut=155))
    assert compared == [(148, 150), (150, 150)]
    compared.clear()
    store.slices(place(150, cut=149), place(160, cut=155))
    assert compared == []
    store.slices(place(160, cut=155), place(170, cut=165))
    assert compared == [(150, 160)]
    compared.clear()
    store.slices(place(160, cut=100), place(170, cut=165))
    assert compared[0] == (100, 148), "a reader that is further behind"


def test_a_train_that_only_the_index_lacks(open_here: Open, monkeypatch: Any) -> None:
    store = filled(open_here)
    store._catalog.execute("CREATE TEMP VIEW holes AS SELECT * FROM events WHERE seq != 100")
    without = index_check._NOT_INDEXED.replace("events i INDEXED BY spans", "holes i")
    monkeypatch.setattr(index_check, "_NOT_INDEXED", without)
    with pytest.raises(StoreCorruptError, match="train 100 is missing from the index"):
        read(store, place(195, cut=50), place(199))
    assert read(store, place(195, cut=150), place(199)) == list(range(150, 199)), "it does not look there"

"""Each call on an open store has it to itself: threads share a store."""

import threading
from collections.abc import Callable
from typing import Any

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.store import open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import LocalStore
from spark_rowtime.store.record import Held
from tests.store.streams import EMPTY, WHOLE, Writer, at, batch, place

Calls = dict[str, Callable[[], Any]]


def calls(store: Store) -> Calls:
    """Calls of all kinds, in an order in which they succeed, by name."""
    writer = Writer(store, "a", declaration='{"rowsImplyBounds": false}')
    return {
        "commit": lambda: writer.send([1], [2], floor=2, late=[0]),
        "commit of cuts": lambda: writer.promise((3, TopicCut({"orders": {0: 5}}))),
        "attach": lambda: store.attach("b", "", "{}"),
        "expect": lambda: store.expect(["c"]),
        "renew": lambda: store.renew("a", writer.epoch),
        "renew_all": lambda: store.renew_all([Held("a", writer.epoch)]),
        "expire": store.expire,
        "read": lambda: store.read(store.slices(EMPTY, WHOLE)[0]),
        "slices": lambda: store.slices(EMPTY, WHOLE),
        "head": store.head,
        "at": lambda: store.at(2),
        "keep": lambda: store.keep("reader", place(1)),
        "report": lambda: store.put_status("reader", "q", "{}"),
        "horizon": store.horizon,
        "snapshot": store.snapshot,
        "full snapshot": lambda: store.snapshot(full=True),
        "producer": lambda: store.producer("a"),
        "summary": store.summary,
        "keys": lambda: store.keys("a"),
        "cuts": lambda: list(store.cuts()),
        "has_cuts": store.has_cuts,
        "last_cuts": lambda: store.last_cuts("a"),
        "raised": lambda: store.raised(at(2) or 0),
        "rejections": lambda: list(store.rejections()),
        "rejected": store.rejected,
        "bounds": store.bounds,
        "detach": lambda: store.detach("b"),
        "close_producer": lambda: store.close_producer("c"),
        "leave": writer.leave,
        "gc": lambda: store.gc(age=0),
        "forget": lambda: store.forget("reader"),
        "wait": lambda: store.wait(0, 0),
    }


def test_every_call_has_the_catalog_to_itself(local_path: str) -> None:
    """The connection to the catalog is one: another thread's statement would be in this one's transaction."""
    with open_store(local_path) as store:
        assert isinstance(store, LocalStore)
        execute, used = store._catalog.execute, []

        def alone(*statement: Any) -> Any:
            assert store._guard._lock._is_owned(), statement
            used.append(statement)
            return execute(*statement)

        store._catalog.execute = alone
        for call in calls(store).values():
            call()
        store.stage(batch(1))
        assert len(used) > 50


def test_a_store_is_closed_after_the_call_of_another_thread(local_path: str) -> None:
    """SQLite crashes if a connection is closed while a thread uses it."""
    store = open_store(local_path)
    assert isinstance(store, LocalStore)
    closing = threading.Thread(target=store.close)
    with store._guard:
        closing.start()
        closing.join(0.3)
        assert closing.is_alive()
        assert store._catalog.execute("SELECT 1").fetchone() == (1,)
    closing.join(240)
    assert not closing.is_alive()
    assert not store._guard.open_here

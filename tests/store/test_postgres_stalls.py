"""While nobody can write into the database, no time passes for leases."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres.store import RECOVERY_MICROS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.sparksession import wait_for
from tests.store.streams import SCHEMA, SECOND, Writer, at, read

LEASE = 30 * SECOND


@contextmanager
def nobody_writes(postgres: Any) -> Iterator[None]:
    """Has the server refuse each write, of sessions that are open, too."""

    def refuse(on: str) -> None:
        postgres.execute(f"ALTER SYSTEM SET default_transaction_read_only = {on}")
        postgres.execute("SELECT pg_reload_conf()")
        wait_for(lambda: postgres.execute("SHOW default_transaction_read_only") == [(on,)], f"the setting to be {on}")

    refuse("on")
    try:
        yield
    finally:
        refuse("off")


def refused(call: Any) -> bool:
    with pytest.raises(StoreUnavailableError):
        call()
    return True


@pytest.mark.parametrize("first", ["one that commits", "one that renews its lease", "a reader"])
def test_a_time_in_which_nobody_can_write_ends_no_lease(postgres: Any, first: str) -> None:
    """Whoever writes first afterwards: a producer that has tried meanwhile, or a reader, which waits for it."""
    path, time = postgres.url(f"stalled/{first}"), [0]
    create_store(path, SCHEMA, StreamSettings())
    with ExitStack() as opened:

        def handle() -> Store:
            store = opened.enter_context(open_store(path))
            store.now, store.steady = lambda: 0, lambda: Reading("boot", time[0])
            return store

        quiet, busy, reader = Writer(handle(), "quiet", lease=LEASE), Writer(handle(), "busy"), handle()
        quiet.send([10], floor=10)
        busy.send([20], floor=20)
        commit = busy.commit([21], floor=21)
        with nobody_writes(postgres):
            time[0] += 5 * SECOND
            assert refused(lambda: quiet.store.renew("quiet", quiet.epoch))
            assert refused(lambda: busy.store.commit(commit))
            time[0] += 10 * LEASE
            assert refused(lambda: busy.store.commit(commit))
            assert not reader.expire()
        if first == "a reader":
            assert not reader.expire()
        if first == "one that commits":
            busy.store.commit(commit)
        assert not quiet.store.renew("quiet", quiet.epoch), "its lease has not ended"
        busy.store.commit(commit)
        assert busy.store.head().floor == at(10), "the quiet one holds the stream"
        assert read(busy.store) == [10, 20, 21]
        time[0] += LEASE
        assert not reader.expire()
        time[0] += RECOVERY_MICROS
        assert reader.expire(), "from then on it counts"
        assert busy.store.head().floor == at(21)
    assert check_store(path).damage == []

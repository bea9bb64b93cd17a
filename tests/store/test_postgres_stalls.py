"""While nobody can write into the database, no time passes for leases."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.store import check_store, create_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.postgres.store import RECOVERY_MICROS
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.sparksession import wait_for
from tests.store.streams import SCHEMA, SECOND, Writer, at, lock_gate, read

LEASE = 30 * SECOND


@contextmanager
def refusing(postgres: Any) -> Iterator[None]:
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


@contextmanager
def full(postgres: Any) -> Iterator[None]:
    """Has each change of a stream's head fail as on a full disk."""
    raises = "BEGIN RAISE disk_full; END"
    postgres.execute(f"CREATE FUNCTION public.is_full() RETURNS trigger LANGUAGE plpgsql AS $${raises}$$")
    postgres.execute(
        "CREATE TRIGGER is_full BEFORE UPDATE ON rowtime.heads FOR EACH ROW EXECUTE FUNCTION public.is_full()"
    )
    try:
        yield
    finally:
        postgres.execute("DROP FUNCTION public.is_full CASCADE")


@contextmanager
def handles(path: str, time: list[int]) -> Iterator[Callable[[], Store]]:
    """Yields what opens the stream, each time anew, by the clock ``time``."""
    with ExitStack() as opened:

        def handle() -> Store:
            store = opened.enter_context(open_store(path))
            store.now, store.steady = lambda: 0, lambda: Reading("boot", time[0])
            return store

        yield handle


def refused(call: Any) -> bool:
    with pytest.raises(StoreUnavailableError):
        call()
    return True


@pytest.mark.parametrize("nobody_writes", [refusing, full])
@pytest.mark.parametrize("first", ["one that commits", "one that renews its lease", "a reader"])
def test_a_time_in_which_nobody_can_write_ends_no_lease(postgres: Any, first: str, nobody_writes: Any) -> None:
    """Whoever writes first afterwards: a producer that has tried meanwhile, or a reader, which waits for it."""
    path, time = postgres.url(f"stalled/{nobody_writes.__name__}/{first}"), [0]
    create_store(path, SCHEMA, StreamSettings())
    with handles(path, time) as handle:
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
            with suppress(StoreUnavailableError):  # it tries where its user may write
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


def test_a_reader_that_could_not_write_once_ends_leases_as_before(postgres: Any) -> None:
    """Another client had the lock. What others have written since shows that it was no stall."""
    path, time = postgres.url("stalled/once"), [0]
    create_store(path, SCHEMA, StreamSettings())
    with handles(path, time) as handle:
        first, second = (Writer(handle(), name, lease=LEASE) for name in ("first", "second"))
        reader = handle()
        first.send([10], floor=10)
        second.send([20], floor=20)
        time[0] += LEASE + 1
        with postgres.connect() as holder:
            lock_gate(holder, reader.number)
            assert not reader.expire()
            holder.rollback()
        second.send([30], floor=30)
        assert reader.head().floor == at(30), "the first one is detached"
        third = Writer(handle(), "third")
        third.send([40], floor=40)
        time[0] += 10 * LEASE
        assert reader.expire()
        assert reader.head().floor == at(40)

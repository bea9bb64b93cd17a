"""A database is restored, or made anew, under sinks and readers that have its streams open.

Law: whoever sent to, or read from, what was there before gets a DataLostError at the next call. It neither writes into
the stream that is there now, nor reads from it.
"""

from collections.abc import Iterator

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.record import Held
from tests.landed import landed
from tests.postgresserver import PostgresServer

DDL = "rowtime TIMESTAMP NOT NULL, n BIGINT"
DROP = "DROP DATABASE shop WITH (FORCE)"


@pytest.fixture
def path(postgres: PostgresServer) -> Iterator[str]:
    postgres.execute("CREATE DATABASE shop", "postgres")
    path = postgres.url("orders", database="shop")
    rt.createStream(path, DDL)
    yield path
    postgres.execute(DROP, "postgres")


def send(sink: rt.RowSink, *numbers: int) -> None:
    sink.sendRows([(f"2026-01-05T14:{n:02d}:00Z", n) for n in numbers])
    sink.flush(checkpoint=str(numbers[-1]))


@pytest.mark.parametrize("maxLag", [None, "1 hour"], ids=["in one trip", "by the ledger"])
def test_a_restored_database_has_another_sink_in_the_epoch_of_an_open_one(
    postgres: PostgresServer, path: str, maxLag: str | None
) -> None:
    path += "2"
    rt.createStream(path, DDL, maxLag=maxLag)
    with rt.openSink(path, producer="a") as sink:
        send(sink, 1)
    postgres.copy("shop", "backup")
    with rt.openSink(path, producer="a", lease=None) as old:
        send(old, 20)
        send(old, 21)
        postgres.execute(DROP, "postgres")
        postgres.execute("ALTER DATABASE backup RENAME TO shop", "postgres")
        with rt.openSink(path, producer="a", lease=None) as new:
            send(new, 10)
            send(new, 11)
            with pytest.raises(rt.DataLostError, match="replaced by an older copy"):
                send(old, 22)
            send(new, 12)
        assert landed(path) == [1, 10, 11, 12]
        old.abandon()


def test_its_lease_is_not_that_of_the_open_one(postgres: PostgresServer, path: str) -> None:
    with open_store(path) as store:
        old = store.attach("a", "one", "{}")
        postgres.execute("UPDATE rowtime.producers SET epoch = 0", "shop")
        new = store.attach("a", "two", "{}")
        assert new.epoch == old.epoch
        renewed, again = store.renew_all([Held("a", 1, "one"), Held("a", 1, "two")])
        assert (type(renewed), again) == (rt.StreamSetBackError, False)
        with pytest.raises(rt.DataLostError, match="replaced by an older copy"):
            store.leave("a", 1, session="one")
        with pytest.raises(rt.DataLostError, match="replaced by an older copy"):
            store.renew("a", 1, session="one")


def test_a_stream_that_was_made_anew_is_another_one(postgres: PostgresServer, path: str) -> None:
    with (
        rt.openSink(path, producer="a", lease=None) as old,
        rt.openReader(path, order="arrival", follow=True) as reader,
    ):
        send(old, 1)
        assert reader.read(timeout=0).rows.num_rows == 1
        postgres.execute(DROP, "postgres")
        postgres.execute("CREATE DATABASE shop", "postgres")
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, s STRING")
        with rt.openSink(path, producer="a", lease=None) as new:
            new.sendRows([("2026-01-05T14:00:00Z", "x"), ("2026-01-05T14:01:00Z", "y")])
            new.flush(checkpoint="y")
            with pytest.raises(rt.DataLostError):
                send(old, 2)
            with pytest.raises(rt.DataLostError):
                reader.read(timeout=0)
            new.sendRow(("2026-01-05T14:02:00Z", "z"))
        assert rt.describeStream(path).rows == 3
        old.abandon()


@pytest.mark.parametrize("order", ["arrival", "rowtime"])
def test_a_reader_of_commits_that_are_gone_is_told_also_once_the_log_has_grown(
    postgres: PostgresServer, path: str, order: str
) -> None:
    """As after a failover to a standby that lacked the last commits, to which the feed has sent them again."""
    with rt.openSink(path, producer="a") as sink:
        send(sink, 1)
    postgres.copy("shop", "backup")
    with rt.openSink(path, producer="a") as sink:
        send(sink, 20)
        send(sink, 21)
    with rt.openReader(path, order=order) as reader:
        assert [row["n"] for train in reader for row in train.rows.to_pylist()] == [1, 20, 21]
        position = reader.position
        postgres.execute(DROP, "postgres")
        postgres.execute("ALTER DATABASE backup RENAME TO shop", "postgres")
        with rt.openSink(path, producer="a", lease=None) as again:
            for n in (20, 22, 23, 24):
                send(again, n)
        with pytest.raises(rt.DataLostError, match="older copy that has grown since"):
            list(reader)
    with (
        rt.openReader(path, order=order, start=position) as reader,
        pytest.raises(rt.DataLostError, match="older copy that has grown since"),
    ):
        list(reader)

"""A reader that would harm: it is a user with the guide's rights of a reader, and psql.

Others go on, whatever it holds or sends, and what they have registered stays.
"""

from typing import Any

import psycopg
import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.snapshot import HOST, READER, READS_TOPIC, WRITER
from tests.postgresserver import PostgresServer
from tests.store.roles import SCHEMA, make_database, row_security, run
from tests.store.streams import place
from tests.streams import send

KEYS = (0x726F7774, *(0x726F7700 + end << 32 for end in b"tsrc"))
"""The advisory locks of this version and of older ones. To all but the first the number of a stream is added."""

DATABASE = "shared"


def store(postgres: PostgresServer, user: str) -> Store:
    return open_store(postgres.url("orders", user=f"{user}_{DATABASE}", database=DATABASE))


def number_of_orders(attacker: Any) -> int:
    [(number,)] = attacker.execute("SELECT id FROM rowtime.streams WHERE name = 'orders'")
    return int(number)


REFUSED = [
    "INSERT INTO rowtime.readers VALUES (1, 'x', 0, NULL, 0)",
    "UPDATE rowtime.readers SET seq = 1000",
    "DELETE FROM rowtime.readers",
    "DELETE FROM rowtime.accounts",
    "INSERT INTO rowtime.accounts VALUES (1, 'writer', 'x', 0, '{}')",
    "UPDATE rowtime.heads SET floor = 0",
    "INSERT INTO rowtime.gates VALUES (1000)",
    "INSERT INTO rowtime.unnamed_objects VALUES (1, '../../x', 'outdated', 0)",
    "SELECT FROM rowtime.unnamed_objects",
    "SELECT FROM rowtime.gates FOR UPDATE",
    "SELECT FROM rowtime.gates FOR KEY SHARE",
    "SELECT FROM rowtime.heads FOR KEY SHARE",
    "SELECT FROM rowtime.producers FOR KEY SHARE",
    "BEGIN; LOCK TABLE rowtime.heads IN SHARE MODE",
    "BEGIN; LOCK TABLE rowtime.streams IN SHARE UPDATE EXCLUSIVE MODE",
    "TRUNCATE rowtime.readers",
    "SELECT rowtime.begin_era(1, 0, 1)",
    f"SET search_path = pg_catalog, pg_temp; SELECT rowtime.commit_plainly(1, 'orders', 'x', 1{', NULL' * 17})",
    "CREATE FUNCTION rowtime.x() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TABLE public.x (n int)",
    "CREATE TEMPORARY TABLE x (n int)",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_a_reader_has_no_right_to_change_or_lock_what_is_not_its_own(attacker: Any, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute(statement)


def test_nobody_waits_for_a_reader(postgres: PostgresServer, attacker: Any) -> None:
    """It holds every advisory lock, and a transaction that has registered, within which it stands."""
    as_owner = postgres.url("orders", user="owner_ann_shared", database="shared")
    with rt.openSink(as_owner, producer="before") as sink:
        send(sink, ("9:00", 1), promise="9:00")
    number = number_of_orders(attacker)
    for key in (*KEYS, *(key + number for key in KEYS[1:])):
        attacker.execute("SELECT pg_advisory_lock(%s)", (key,))
    attacker.execute("BEGIN")
    attacker.execute("SELECT rowtime.keep_reader(%s, 'orders', 'held', 0, NULL, 0, 'stream')", (number,))
    with rt.openSink(postgres.url("orders", user="writer_ann_shared", database="shared"), producer="shop") as sink:
        for n in range(3):
            send(sink, (f"10:0{n}", n), promise=f"10:0{n}")
        sink.flush(checkpoint="a")
    with store(postgres, "writer_ann") as writer:
        assert "registers" in str(writer.gc(age=0).kept_for) or "copy" in str(writer.gc(age=0).kept_for)
    with store(postgres, "reader_ann") as reader:
        reader.keep("waits for nobody", place(1))
        reader.forget("waits for nobody")
    rt.createStream(as_owner + "2", SCHEMA)
    rt.renameStream(as_owner + "2", as_owner + "3")
    rt.alterStream(as_owner + "3", add="coupon STRING")
    rt.deleteStream(as_owner + "3")
    attacker.execute("ROLLBACK")


def test_nothing_is_folded_while_a_reader_registers(postgres: PostgresServer, attacker: Any) -> None:
    """It may be a query, which reads the cuts once it is registered, and must get the same when it reads them again."""
    path = postgres.url("bounds", user="owner_ann_shared", database="shared")
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        for n in range(3):
            sink.sendRowtimeBound(f"2026-03-01 10:0{n}", cut={"orders": {0: n + 1}})
            sink.flush()
    with open_store(path) as bounds:
        bounds.keep("has passed them", place(bounds.head().seq), READS_TOPIC)
        [(number,)] = attacker.execute("SELECT id FROM rowtime.streams WHERE name = 'bounds'")
        attacker.execute("BEGIN")
        attacker.execute("SELECT rowtime.keep_reader(%s, 'bounds', 'begins', 0, NULL, 0, 'topic')", (number,))
        bounds.gc()
        attacker.execute("COMMIT")
        bounds.gc()
        assert len(list(bounds.cuts())) == 3
    rt.deleteStream(path, force=True)


def test_a_registration_is_its_users_own(postgres: PostgresServer, attacker: Any) -> None:
    with store(postgres, "reader_ann") as ann, store(postgres, "reader_bob") as bob:
        ann.keep("alerts", place(1))
        bob.keep("of bob", place(1))
        for call in (lambda: bob.keep("alerts", place(9)), lambda: bob.forget("alerts")):
            with pytest.raises(
                rt.StoreUnavailableError, match=r"this reader is of the user reader_ann_shared"
            ) as error:
                call()
            assert error.value.values["lacks"] == "privilege"
        ann.keep("alerts", place(2))
        assert {reader.name: reader.position.seq for reader in ann.snapshot().readers} == {"alerts": 2, "of bob": 1}
        bob.forget("of bob")
    with store(postgres, "writer_ann") as writer, pytest.raises(rt.StoreUnavailableError, match="reader_ann_shared"):
        writer.forget("alerts")
    with store(postgres, "owner_ann") as owner:
        owner.keep("alerts", place(1))  # an operator moves it, and it stays whose it was
        with store(postgres, "reader_ann") as ann:
            ann.keep("alerts", place(2))
        owner.forget("alerts")
        assert not owner.snapshot().readers


def test_who_may_only_read_is_not_there_before_the_query_of_a_writer(postgres: PostgresServer) -> None:
    """It knows the name, which is the path of a checkpoint. The writer's query gets its registration, and keeps it."""
    name = "file:///ckpt/alerts/sources/0"
    with store(postgres, "reader_bob") as bob, store(postgres, "writer_ann") as writer:
        bob.keep(name, place(9))
        writer.keep(name, place(0), READS_TOPIC)
        [found] = [one for one in bob.snapshot().readers if one.name == name]
        assert (found.position.seq, found.reads, found.trusted) == (0, READS_TOPIC, True)
        for call in (lambda: bob.keep(name, place(9)), lambda: bob.forget(name)):
            with pytest.raises(rt.StoreUnavailableError, match="writer_ann_shared"):
                call()
        with store(postgres, "writer_bob") as other, pytest.raises(rt.StoreUnavailableError, match="writer_ann_shared"):
            other.keep(name, place(9))
        writer.forget(name)


def test_who_may_only_read_keeps_the_query_of_another_reader_out_by_its_name(postgres: PostgresServer) -> None:
    """What does not hold between readers. It is said, and no position is taken from the one who was there before."""
    with store(postgres, "reader_bob") as bob, store(postgres, "reader_ann") as ann:
        bob.keep("alerts", place(0))
        with pytest.raises(rt.StoreUnavailableError, match="this reader is of the user reader_bob_shared"):
            ann.keep("alerts", place(0))
        with store(postgres, "owner_ann") as owner:
            owner.forget("alerts")
        ann.keep("alerts", place(0))
        ann.forget("alerts")


def test_a_status_is_its_users_own(postgres: PostgresServer, attacker: Any) -> None:
    with store(postgres, "reader_ann") as ann, store(postgres, "reader_bob") as bob:
        ann.put_status(READER, "q", "{}")
        for role in (READER, HOST, WRITER):
            with pytest.raises(rt.StoreUnavailableError, match="lacks a privilege"):
                bob.put_status(role, "q", '{"path": "/home/bob"}')
        at = number_of_orders(attacker), "orders"
        attacker.execute("SELECT rowtime.report_account(%s, %s, 'reader', 'far', 1::bigint << 62, '')", at)
        assert {(a.role, a.name) for a in ann.snapshot().statuses} == {(READER, "q"), (READER, "far")}
        attacker.execute("SELECT rowtime.keep_reader(%s, %s, 'far', 1, NULL, 1::bigint << 62, 'stream')", at)
        now = ann._uptime()
        seen = {seen for (seen,) in attacker.execute("SELECT seen FROM rowtime.readers WHERE name = 'far'")}
        assert max(seen) <= now + 60_000_000, "or rowtime gc --forget-older would never find it old"
        bob.forget("far")
        ann.put_status(READER, "q", '{"a": 1}')
    with store(postgres, "writer_ann") as writer:
        writer.put_status(HOST, "adapter", "{}")


def test_a_name_has_as_many_bytes_as_an_index_takes(postgres: PostgresServer, attacker: Any) -> None:
    """Also one that the server would compress: all names of a stream are read at once. Names of queries are long."""
    at, longest, longer = (number_of_orders(attacker), "orders"), "ä" * 1297, "x" * 100_000
    keep = "SELECT rowtime.keep_reader(%s, %s, %s, 1, NULL, 0, 'stream')"
    report = "SELECT rowtime.report_account(%s, %s, 'reader', %s, 0, '')"
    for statement in (keep, report):
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="a name has more than 2600 bytes"):
            attacker.execute(statement, (*at, longer))
    with store(postgres, "reader_ann") as ann:
        with pytest.raises(rt.InvalidOptionError, match="may have up to 2,600 bytes"):
            ann.keep(longer, place(0))
        ann.keep(longest, place(0))
        ann.put_status(READER, longest, "{}")
        ann.forget(longest)


def test_a_viewer_reads_and_registers_nothing(postgres: PostgresServer, database: str) -> None:
    path = postgres.url("orders", user="viewer_ann_shared", database=database)
    with rt.openSink(postgres.url("orders", user="writer_ann_shared", database=database), producer="late") as sink:
        send(sink, ("11:00", 1))
    with rt.openReader(path, order="arrival") as reader:
        assert sum(train.rows.num_rows for train in reader) >= 1
    assert rt.describeStream(path).rows >= 1
    with store(postgres, "viewer_ann") as viewer, pytest.raises(rt.StoreUnavailableError, match="keep_reader"):
        viewer.keep("x", place(1))


def test_who_has_no_role_learns_nothing(postgres: PostgresServer, database: str) -> None:
    postgres.execute("CREATE ROLE nobody_shared LOGIN")
    with pytest.raises(rt.StoreUnavailableError, match="permission denied for database"):
        rt.describeStream(postgres.url("orders", user="nobody_shared", database=database))


FORGED = (
    "INSERT INTO rowtime.events SELECT stream, h.seq + 1, 'left', e.producer, 0, 0, 0, 0, h.rows + 1, e.rows, "
    "e.least, e.largest, e.width, e.length, e.checksum FROM rowtime.heads h JOIN rowtime.events e USING (stream) "
    "WHERE e.producer = '{}' AND e.width IS NOT NULL LIMIT 1"
)
"""A train of a producer under another kind of event."""


def test_a_writer_sends_as_nobody_who_has_a_login(postgres: PostgresServer) -> None:
    """With the row security of the guide. Each goes on through many eras, takes over its own, and notes what ended."""
    owner = make_database(postgres, "bound")
    run(postgres, row_security(), "bound", owner)
    ann, bob = (f"writer_{who}_bound" for who in ("ann", "bob"))
    path = {user: postgres.url("orders", user=user, database="bound") for user in (ann, bob, owner)}
    with rt.openSink(path[ann], producer=ann, lease=None) as own, rt.openSink(path[bob], producer="free") as free:
        for n in range(70):
            send(own, (f"10:{n // 2:02d}", n))
            send(free, (f"10:{n // 2:02d}", n))
        with pytest.raises(rt.StoreUnavailableError, match="violates row-level security"):
            rt.openSink(path[bob], producer=ann)
        with postgres.connect(user=bob, database="bound") as attacker:
            for statement in (
                f"INSERT INTO rowtime.events SELECT stream, seq + 1, 'sent', '{ann}', 0, 0, 0, 0, 0 FROM rowtime.heads",
                FORGED.format(ann),
                f"UPDATE rowtime.producers SET floor = 0 WHERE name = '{ann}'",
                "UPDATE rowtime.events SET producer = 'free'",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                    attacker.execute(statement)
        send(own, ("11:00", 1), promise="11:00")
    with rt.openSink(path[ann], producer=ann, lease=None) as own:
        send(own, ("12:00", 1), promise="12:00")
    with open_store(path[bob]) as writer:
        assert writer.gc(age=0, force=True).rows > 0
    assert check_store(path[bob]).damage == []

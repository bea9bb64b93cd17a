"""Functions and operators that somebody has put into ``public``: a superuser who uses a stream never runs them.

On PostgreSQL 14, and on servers that were upgraded from it, everybody may create them there. One that fits the types of
its arguments better than PostgreSQL's own would be chosen, wherever a statement does not say which it means.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import psycopg
import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, copy_store, open_store
from tests.otherpostgres import server_of
from tests.postgresserver import PostgresServer
from tests.store.roles import SCHEMA
from tests.store.streams import place
from tests.streams import send

TYPES = ("smallint", "integer", "bigint", "numeric", "double precision", "text", "varchar", "name")
OPERATORS = ("+", "-", "*", "=", "<>", "<", "<=", ">", ">=")
FUNCTIONS = (
    "pg_advisory_lock", "pg_advisory_unlock", "pg_try_advisory_lock", "pg_advisory_lock_shared",
    "pg_advisory_unlock_shared", "pg_advisory_xact_lock", "pg_try_advisory_xact_lock", "octet_length", "min", "max",
    "sum", "to_regclass", "current_setting", "quote_ident", "pg_get_userbyid",
)  # fmt: skip
"""Functions of one argument."""
COMMIT = f"SELECT rowtime.commit_plainly(1, 'search path', 'x', 1{', NULL' * 17})"
TRAP = """CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user) THEN
        ALTER ROLE mallory SUPERUSER;
    END IF;
    RETURN true;
END $$"""


@pytest.fixture
def oldest() -> Iterator[PostgresServer]:
    yield from server_of("14")


def set_traps(server: PostgresServer) -> None:
    """Makes a database in which mallory, who has no rights but those of everybody, has put traps into ``public``."""
    server.execute("CREATE ROLE mallory LOGIN")
    server.execute("CREATE DATABASE traps")
    server.execute("GRANT CREATE ON SCHEMA public TO PUBLIC", database="traps")
    with server.connect(user="mallory", database="traps") as mallory:
        mallory.execute(TRAP)
        for left, right in product(TYPES, TYPES):
            body = f"public.trap_of(a {left}, b {right})"
            mallory.execute(f"CREATE FUNCTION {body} RETURNS boolean LANGUAGE sql AS 'SELECT public.trap()'")
            for sign in OPERATORS:
                of = f"LEFTARG = {left}, RIGHTARG = {right}"
                mallory.execute(f"CREATE OPERATOR public.{sign} (FUNCTION = public.trap_of, {of})")
        for name, of in product(FUNCTIONS, TYPES):
            body = "'SELECT public.trap()'"
            mallory.execute(f"CREATE FUNCTION public.{name}({of}) RETURNS boolean LANGUAGE sql AS {body}")


def caught(server: PostgresServer) -> bool:
    (row,) = server.execute("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'")
    return bool(row[0])


def test_a_superuser_runs_no_function_of_public(postgres: PostgresServer, tmp_path: Path) -> None:
    a_superuser_uses_streams(postgres, tmp_path)


@pytest.mark.long
def test_a_superuser_runs_no_function_of_public_on_the_oldest_server(oldest: PostgresServer, tmp_path: Path) -> None:
    a_superuser_uses_streams(oldest, tmp_path)


def a_superuser_uses_streams(server: PostgresServer, tmp_path: Path) -> None:
    set_traps(server)
    path = server.url("orders", database="traps")
    rt.createStream(path, SCHEMA, producers=["shop"], maxLag="1 day", retainBytes=1000, location=str(tmp_path / "rows"))
    for _ in range(2):
        with rt.openSink(path, producer="shop", onLate="reject") as sink:
            send(sink, ("10:00", 1), promise="11:00")
            send(sink, ("10:30", 2))
    rt.createStream(path + "/plain", SCHEMA)
    with rt.openSink(path + "/plain", producer="kafka") as sink:
        sink.sendRowtimeBound("2000-01-05T12:00Z", cut={"orders": {0: 7}})
    with rt.openSink(path + "/plain", producer="shop") as sink:
        for n in range(200):  # more than an era
            send(sink, (f"10:{n // 4:02d}", n))
    with rt.openReader(path, name="alerts") as reader:
        list(reader)
    with open_store(path) as store:
        store.put_status("reader", "q", "{}")
        store.keep("other", place(1))
        store.forget("other")
        store.snapshot(full=True)
        store.expire()
        store.gc(age=0, force=True)
    assert check_store(path).damage == []
    str(rt.why(path, "2026-01-05T15:00Z"))
    copy_store(path, path + "/copy")
    rt.alterStream(path + "/copy", add="coupon STRING")
    rt.renameStream(path + "/copy", path + "/renamed")
    assert len(rt.listStreams(server.url(database="traps"))) == 3
    rt.deleteStream(path + "/renamed", force=True)
    with server.connect(database="traps") as other, pytest.raises(psycopg.errors.InvalidSchemaName):
        other.execute(f"SET search_path = public, pg_catalog; {COMMIT}")
    assert not caught(server)
    with server.connect(database="traps") as victim:  # the traps are real
        victim.execute("SELECT x * 1000000 FROM (VALUES (1::numeric)) t (x)")
    assert caught(server)


def test_the_functions_of_a_stream_choose_none_either(postgres: PostgresServer) -> None:
    """Also where a session has another search path, as psql has, or a trigger that somebody's change fires.

    The one for commits refuses such a session, in its first statement, which names all by its schema.
    """
    rt.createStream(postgres.url("search path"), SCHEMA)
    found = postgres.execute(
        "SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'rowtime'::regnamespace "
        "AND proconfig IS DISTINCT FROM ARRAY['search_path=pg_catalog, pg_temp']"
    )
    assert found == [("commit_plainly", None)]
    with postgres.connect() as session:
        for place in ("public", '"pg_catalog, pg_temp"', "pg_temp, pg_catalog", "public, pg_catalog, pg_temp"):
            session.execute(f"SET search_path = {place}")
            with pytest.raises(psycopg.errors.InvalidSchemaName):
                session.execute(COMMIT)

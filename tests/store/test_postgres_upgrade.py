"""Databases of earlier versions open: what they have is there, and who could use them still can."""

from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from tests.postgresserver import PostgresServer
from tests.store.roles import blocks, give, run
from tests.store.streams import place

GOLDEN = Path(__file__).parents[1] / "golden" / "postgres-4.sql"
"""What pg_dump wrote of a database of version 4, with the roles that the guide gave then."""
NEW = ("keep_reader", "forget_reader", "report_account")


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> str:
    """The database of version 4, which ``dba_upgraded`` owns, and users of its roles."""
    for statement in ("CREATE ROLE dba_upgraded LOGIN", "CREATE DATABASE upgraded OWNER dba_upgraded"):
        postgres.execute(statement)
    if not postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'rowtime_owner'"):
        run(postgres, blocks()[0], "postgres", "rowtime")
    for role in ("reader", "writer", "owner"):
        postgres.execute(f"CREATE ROLE {role}_upgraded LOGIN IN ROLE rowtime_{role}")
    with postgres.connect(user="dba_upgraded", database="upgraded") as connection:
        connection.execute(GOLDEN.read_text())
    return "upgraded"


def test_a_database_of_version_4_goes_on(postgres: PostgresServer, database: str) -> None:
    """A superuser opens it first, and gets no function that runs with its rights."""

    def path(user: str) -> str:
        return postgres.url("orders", user=user, database=database)

    with pytest.raises(rt.StoreUnavailableError, match="as dba_upgraded, who owns them"):
        rt.describeStream(path("writer_upgraded"))
    shown = rt.describeStream(path("rowtime"))
    assert (shown.rows, shown.rejected, shown.producers[0].checkpoint) == (1, 1, "one")
    owners = postgres.execute(
        "SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'rowtime'::regnamespace "
        "UNION SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'rowtime'::regnamespace",
        database=database,
    )
    assert owners == [("dba_upgraded",)]
    with open_store(path("reader_upgraded")) as reader:
        reader.keep("alerts", place(1))
        reader.report("reader", "q", "{}")
    with rt.openSink(path("writer_upgraded"), producer="shop") as sink:
        sink.sendRow(("2026-01-05T12:00Z", 3))
    assert check_store(path("reader_upgraded")).damage == []
    rt.createStream(path("owner_upgraded") + "2", "rowtime TIMESTAMP NOT NULL")
    with open_store(path("owner_upgraded")) as owner:
        owner.forget("alerts")
    rt.deleteStream(path("owner_upgraded") + "2")


def test_the_grants_of_the_guide_take_away_what_readers_had(postgres: PostgresServer, database: str) -> None:
    rt.describeStream(postgres.url("orders", database=database))
    give(postgres, database, "dba_upgraded")
    with postgres.connect(user="reader_upgraded", database=database) as reader:
        for table in ("readers", "accounts"):
            row = reader.execute(f"SELECT has_table_privilege('rowtime.{table}', 'INSERT, UPDATE, DELETE')").fetchone()
            assert row == (False,)
    with open_store(postgres.url("orders", user="reader_upgraded", database=database)) as reader:
        reader.keep("alerts", place(1))

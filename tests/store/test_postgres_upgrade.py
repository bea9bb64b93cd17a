"""Databases of earlier versions open: what they have is there, and who could use them still can."""

import hashlib
from pathlib import Path

import psycopg
import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from spark_rowtime.store.postgres import registrations, tables
from tests.postgresserver import PostgresServer
from tests.store.roles import blocks, give, run
from tests.store.streams import place

GOLDEN = Path(__file__).parents[1] / "golden"
"""What pg_dump wrote of databases of earlier versions, with the roles that the guide gave then."""


@pytest.fixture(scope="module", params=[4, 5, 6], ids="version {}".format)
def database(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """The database of that version, which ``dba_NAME`` owns, and users of its roles."""
    name = f"upgraded{request.param}"
    for statement in (f"CREATE ROLE dba_{name} LOGIN", f"CREATE DATABASE {name} OWNER dba_{name}"):
        postgres.execute(statement)
    if not postgres.execute("SELECT 1 FROM pg_roles WHERE rolname = 'rowtime_owner'"):
        run(postgres, blocks()[0], "postgres", "rowtime")
    for role in ("reader", "writer", "owner"):
        postgres.execute(f"CREATE ROLE {role}_{name} LOGIN IN ROLE rowtime_{role}")
    with postgres.connect(user=f"dba_{name}", database=name) as connection:
        connection.execute((GOLDEN / f"postgres-{request.param}.sql").read_text())
    return name


def test_a_database_of_an_earlier_version_goes_on(postgres: PostgresServer, database: str) -> None:
    """A superuser opens it first, and gets no function that runs with its rights."""

    def path(user: str) -> str:
        return postgres.url("orders", user=user, database=database)

    with pytest.raises(rt.StoreUnavailableError, match=f"as dba_{database}, who owns them"):
        rt.describeStream(path(f"writer_{database}"))
    shown = rt.describeStream(path("rowtime"))
    assert (shown.rows, shown.rejected, shown.producers[0].checkpoint) == (1, 1, "one")
    assert {reader.reads for reader in shown.readers} <= {None}
    assert shown.settings["maxAhead"] is None, "streams that were there keep theirs"
    owners = postgres.execute(
        "SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE pronamespace = 'rowtime'::regnamespace "
        "UNION SELECT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'rowtime'::regnamespace",
        database=database,
    )
    assert owners == [(f"dba_{database}",)]
    with open_store(path(f"reader_{database}")) as reader:
        reader.keep("orders", place(1))
        reader.put_status("reader", "q", "{}")
    with rt.openSink(path(f"writer_{database}"), producer="shop") as sink:
        sink.sendRow(("2026-01-05T12:00Z", 3))
    assert check_store(path(f"reader_{database}")).damage == []
    rt.createStream(path(f"owner_{database}") + "2", "rowtime TIMESTAMP NOT NULL")
    with open_store(path(f"owner_{database}")) as owner:
        owner.forget("orders")
    rt.deleteStream(path(f"owner_{database}") + "2")


def test_the_grants_of_the_guide_take_away_what_readers_had(postgres: PostgresServer, database: str) -> None:
    rt.describeStream(postgres.url("orders", database=database))
    give(postgres, database, f"dba_{database}")
    with postgres.connect(user=f"reader_{database}", database=database) as reader:
        for table in ("readers", "accounts"):
            row = reader.execute(f"SELECT has_table_privilege('rowtime.{table}', 'INSERT, UPDATE, DELETE')").fetchone()
            assert row == (False,)
    with open_store(postgres.url("orders", user=f"reader_{database}", database=database)) as reader:
        reader.keep("orders", place(1))


def test_tables_of_version_7_get_the_limit_of_names(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE upgraded7")
    path = postgres.url("orders", database="upgraded7")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    limit = "octet_length(name) > 2600"
    assert limit in registrations.FUNCTIONS
    keep = "SELECT rowtime.keep_reader(id, name, repeat('x', {}), 1, NULL, 0, 'stream') FROM rowtime.streams"
    with postgres.connect(database="upgraded7") as connection:
        connection.execute(registrations.FUNCTIONS.replace(limit, "false"))
        connection.execute("UPDATE rowtime.version SET version = 7")
        connection.execute(keep.format(2601))
        open_store(path).close()
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="a name has more than 2600 bytes"):
            connection.execute(keep.format(2602))


def test_other_functions_have_another_version() -> None:
    """A database that has this version is not given them: where this fails, count ``VERSION`` up, with an entry."""
    digest = hashlib.sha256(tables.FUNCTIONS.encode()).hexdigest()
    assert (tables.VERSION, digest[:16]) == (8, "625d3cedb6476beb")

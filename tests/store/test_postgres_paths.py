"""Paths of streams in PostgreSQL: what they may say, what they must not, and what errors repeat of them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store.postgres.address import address, database_address
from spark_rowtime.store.postgres.connection import REQUIRE_AUTH_SINCE
from spark_rowtime.store.postgres.tables import VERSION
from tests.thief import Thief, thief

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"


@pytest.mark.parametrize(
    "path",
    [
        "postgresql://ann:s3cret@db/shop/orders",
        "postgresql://ann:s3cret@db:5432,other:5432/shop/orders",
        "postgresql://db/shop/orders?password=s3cret",
        "postgresql://db/shop/orders?sslmode=require&PASSWORD=s3cret",
        "postgresql://db/shop/orders?pass%77ord=s3cret",
        "postgresql://db/shop/orders?sslpassword=s3cret",
        "postgresql://ann:s3cret@db",
        "postgresql://ann:s3cret/x@db/shop/orders",
        "postgresql://ann:12/s3cret@db/shop/orders",
        "postgresql://ann:12?s3cret@db/shop/orders",
        "postgresql://ann:12/s3/cret/s3cret@db/shop/orders",
    ],
)
def test_a_password_in_a_path_is_refused_and_not_repeated(path: str) -> None:
    for call in (rt.describeStream, rt.openSink, rt.openReader, rt.listStreams, lambda p: rt.createStream(p, SCHEMA)):
        with pytest.raises(rt.InvalidOptionError) as caught:
            call(path)
        shown = f"{caught.value} {caught.value.values} {caught.value.__cause__} {caught.value.__context__}"
        assert "s3cret" not in shown
    assert "password" in str(caught.value).lower()


SECRET = "s3cret"
USERS = ["", "ann@", "a%20b@"]
LEAKS = {
    "{user}": ["u:@@", "u%3A@@", "u%3a12/@@", ":@@", "u:x%40@@"],
    "{host}": ["db:@", "@:x:y", "[::1]@"],
    "{database}": ["u:@@h", "u%3A@%40h"],
    "{options}": [
        "password=@", "#@", "#password=@", "?@", "sslmode=require&@", "options=-c%20x.y=@", "application_name=a=@",
        "host=u:@@h", "host=u%3a@%40h", "user=u:@", "user=u%3A@", "dbname=postgresql://u:@@h/db", "sslcert=@",
        "application_name=%zz@", "application_name=%00@", "host=h&hostaddr=u:@@127.0.0.1", "?passw%6frd=@",
    ],
}  # fmt: skip
"""Parts that a path must not have, by their place. A @ is the secret, @@ the secret before a @."""


def leaking_path(random: Random) -> str:
    """A path, often none of a stream, with a secret in one of its parts."""
    chosen = {
        "{user}": random.choice(USERS),
        "{host}": random.choice(["", "db", "db:5432", "db,other:5433", "[::1]:5432"]),
        "{database}": random.choice(["", "shop", "sh%6Fp"]),
        "{stream}": random.choice(["", "/", "/orders", "/eu/orders", "/o@v2"]),
        "{options}": random.choice(["", "sslmode=require", "user=joe"]),
    }
    place = random.choice(list(LEAKS))
    leak = random.choice(LEAKS[place]).replace("@", "<", 1).replace("<", SECRET)
    joined = leak if place != "{options}" or not chosen[place] else f"{chosen[place]}&{leak}"
    chosen[place] = joined
    options = chosen["{options}"]
    mark = "" if not options or options[0] in "#?" else "?"
    return (
        f"postgresql://{chosen['{user}']}{chosen['{host}']}/{chosen['{database}']}{chosen['{stream}']}{mark}{options}"
    )


@pytest.mark.search
def test_no_part_that_a_path_must_not_have_is_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever call is given it: no error, value of one, log line or output has the secret."""
    local = str(tmp_path / "s")
    rt.createStream(local, SCHEMA)
    calls: list[Callable[[str], Any]] = [
        *(rt.describeStream, rt.openSink, rt.openReader, rt.listStreams, rt.adoptLocation, rt.deleteStream),
        lambda path: rt.createStream(path, SCHEMA),
        lambda path: rt.copyStream(path, local + "2"),
        lambda path: rt.copyStream("memory://none", path),
        lambda path: rt.renameStream(path, local),
        lambda path: rt.renameStream(local, path),
        lambda path: rt.openReader(path + "\0"),
        lambda path: rt.createStream(path + "\n", SCHEMA),
        lambda path: rt.openReader(path + "\udc80"),
    ]
    random = Random(20060911)
    for path in (leaking_path(random) for _ in range(300)):
        call = random.choice(calls)
        with pytest.raises(rt.InvalidOptionError) as caught:
            call(path)
        error = caught.value
        assert SECRET not in f"{error} {error!r} {error.values} {error.__cause__!r} {error.__context__!r}", path
        assert SECRET not in CliRunner().invoke(main, ["describe", "--", path]).output, path
    assert SECRET not in f"{caplog.text}{capfd.readouterr()}"


@pytest.mark.parametrize(
    "stream", ["orders@v2", "o?user=joe@corp&sslrootcert=/etc/ca.pem", "a/b?application_name=b@/c"]
)
def test_an_at_sign_need_not_end_a_password(stream: str) -> None:
    from spark_rowtime.store.postgres.address import address

    for server in ("db", "db:5432", "ann@db:5432", "db:5432,other:5433"):
        assert address(f"postgresql://{server}/shop/{stream}").stream == stream.partition("?")[0]


@pytest.mark.parametrize("path", ["postgresql://", "postgresql://db", "postgresql://db/", "postgresql://db/shop"])
def test_a_path_without_a_stream_is_refused(path: str) -> None:
    with pytest.raises(rt.InvalidOptionError, match="postgresql://host:port/database/stream"):
        rt.createStream(path, SCHEMA)


REFUSED = {
    "passfile": "PGPASSFILE", "service": "PGSERVICE", "sslkey": "PGSSLKEY",
    "oauth_client_secret": "PGSERVICE", "scram_client_key": "PGSERVICE", "sslkeylogfile": "PGSERVICE",
    "gsslib": "PGGSSLIB", "Passfile": "PGPASSFILE", "o%61uth_client_secret": "PGSERVICE", "no_such": "PGSERVICE",
}  # fmt: skip


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_no_path_may_have_is_refused_and_not_repeated(option: str) -> None:
    """Paths are in checkpoints and logs: no secrets, no files of secrets, no libraries."""
    for options in (f"{option}=s3cret", f"sslmode=require&{option}=s3cret", f"{option}=s3cret&sslmode=require"):
        with pytest.raises(rt.InvalidOptionError, match=REFUSED[option]) as caught:
            rt.describeStream(f"postgresql://db/shop/orders?{options}")
        assert "s3cret" not in f"{caught.value} {caught.value.values} {caught.value.__context__}"


def test_a_misspelled_option_has_a_hint() -> None:
    with pytest.raises(rt.InvalidOptionError, match="Did you mean 'sslmode'"):
        rt.describeStream("postgresql://db/shop/orders?sslmod=require")


def asked_for_password(server: Thief, more: str = "") -> str:
    with pytest.raises(rt.StoreUnavailableError) as caught:
        rt.describeStream(f"postgresql://ann@127.0.0.1:{server.port}/shop/orders{more}")
    assert server.calls
    return str(caught.value)


def test_a_server_that_asks_for_a_clear_password_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the operator says otherwise, in the path or in the environment."""
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    if psycopg.pq.version() < REQUIRE_AUTH_SINCE:
        pytest.skip("this libpq has no require_auth")
    with thief() as server:
        assert "require_auth" in asked_for_password(server)
        assert b"s3cret" not in server.heard
        asked_for_password(server, "?require_auth=password")
        assert b"s3cret" in server.heard
    with thief() as server:
        monkeypatch.setenv("PGREQUIREAUTH", "password")
        asked_for_password(server)
        assert b"s3cret" in server.heard


def test_a_server_with_scram_gets_what_it_needs(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rt.createStream(postgres.url("scram"), SCHEMA)
    with postgres.connect() as connection:
        connection.execute("CREATE ROLE scram_user LOGIN SUPERUSER PASSWORD 's3cret'")
    rules = postgres.data / "pg_hba.conf"
    before = rules.read_text()
    try:
        rules.write_text(f"host all scram_user all scram-sha-256\n{before}")
        with postgres.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")
        monkeypatch.setenv("PGPASSWORD", "s3cret")
        assert rt.describeStream(postgres.url("scram", user="scram_user")).rows == 0
        monkeypatch.setenv("PGPASSWORD", "another")
        with pytest.raises(rt.StoreUnavailableError, match="password authentication failed"):
            rt.describeStream(postgres.url("scram", user="scram_user"))
    finally:
        rules.write_text(before)
        with postgres.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")


def test_options_are_those_of_the_client_library() -> None:
    found = address("postgresql://ann@db:5433/shop/eu/orders?sslmode=verify-full&sslrootcert=/etc/ca.pem")
    assert found.stream == "eu/orders"
    given = dict(part.split("=", 1) for part in found.conninfo.split())
    assert given == {
        "user": "ann", "host": "db", "port": "5433", "dbname": "shop", "sslmode": "verify-full",
        "sslrootcert": "/etc/ca.pem",
    }  # fmt: skip
    with pytest.raises(rt.InvalidOptionError, match="sslmod"):
        address("postgresql://db/shop/orders?sslmod=require")
    assert database_address("postgresql://db/shop?sslmode=require").other("a") == (
        "postgresql://db/shop/a?sslmode=require"
    )


def test_without_the_extra_the_error_names_it() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "import spark_rowtime as rt\n"
        "try:\n    rt.openReader('postgresql://db/shop/orders')\n"
        "except rt.ExtraNotInstalledError as error:\n    print(error.values, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("{'extra': 'postgres'}")
    assert "pip install 'spark-rowtime[postgres]'" in done.stdout


def test_a_stream_that_is_not_there(postgres: Any) -> None:
    rt.createStream(postgres.url("paths/orders"), SCHEMA)
    with pytest.raises(rt.StreamNotFoundError, match="Did you mean 'paths/orders'"):
        rt.openReader(postgres.url("paths/order"))
    postgres.execute("CREATE DATABASE empty_one", database="postgres")
    for call in (rt.describeStream, rt.deleteStream, lambda path: rt.renameStream(path, path + "2")):
        with pytest.raises(rt.StreamNotFoundError):
            call(postgres.url("orders", database="empty_one"))
    assert rt.listStreams(postgres.url(database="empty_one")) == []
    with pytest.raises(rt.StoreUnavailableError, match="does not exist"):
        rt.openReader(postgres.url("orders", database="no_such"))


@pytest.mark.parametrize("style", ["ISO", "German, DMY"])
def test_a_stream_is_not_renamed_into_another_database(
    postgres: Any, monkeypatch: pytest.MonkeyPatch, style: str
) -> None:
    """However the paths name the server. Before, it got the other name in its own database."""
    monkeypatch.setenv("PGDATESTYLE", style)
    path = postgres.url(f"paths/renamed {style}")
    rt.createStream(path, SCHEMA)
    with pytest.raises(rt.InvalidOptionError, match="another database"):
        rt.renameStream(path, postgres.url("paths/elsewhere", database="postgres"))
    to = path.replace("127.0.0.1", "localhost") + "2"
    rt.renameStream(path, to)
    assert path + "2" in [stream.path for stream in rt.listStreams(postgres.url("paths/"))]


def test_a_name_that_is_too_long_for_the_database(postgres: Any) -> None:
    path, name = postgres.url("paths/long"), "".join(map(str, range(3000)))
    rt.createStream(path, SCHEMA)
    with pytest.raises(rt.InvalidOptionError, match="500 characters"):
        rt.openSink(path, producer=name)
    with pytest.raises(rt.InvalidOptionError, match="2,600 bytes"):
        rt.createStream(path + name, SCHEMA)


def test_a_text_that_the_encoding_of_the_database_lacks(postgres: Any) -> None:
    """The commit is refused. If it counted as one whose outcome is not known, the sink could never go on."""
    postgres.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", "postgres"
    )
    path = postgres.url("Zürich", database="latin")
    rt.createStream(path, SCHEMA)
    with pytest.raises(rt.InvalidOptionError, match="has no equivalent in encoding"):
        rt.createStream(postgres.url("東京", database="latin"), SCHEMA)
    with rt.openSink(path, producer="Bär") as sink:
        sink.sendRowtimeBound("2026-01-05T10:00Z")
        with pytest.raises(rt.InvalidOptionError, match="encoding UTF8"):
            sink.flush(checkpoint="東京")
        sink.flush(checkpoint="Köln")
    assert [known.checkpoint for known in rt.describeStream(path).producers] == ["Köln"]


def test_a_database_without_characters_gets_no_stream(postgres: Any) -> None:
    postgres.execute(
        "CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0", "postgres"
    )
    with pytest.raises(rt.InvalidOptionError, match="ENCODING 'UTF8'"):
        rt.createStream(postgres.url("orders", database="ascii"), SCHEMA)


def test_no_server(postgres: Any) -> None:
    with pytest.raises(rt.StoreUnavailableError, match="refused"):
        rt.openReader(postgres.url("orders", port=1))


BEFORE_5 = """
DROP FUNCTION rowtime.keep_reader; DROP FUNCTION rowtime.forget_reader; DROP FUNCTION rowtime.report_account;
DROP FUNCTION rowtime.may_replace; DROP FUNCTION rowtime.refuse; DROP FUNCTION rowtime.uptime; DROP TABLE rowtime.gates;
DROP FUNCTION rowtime.require_room; ALTER TABLE rowtime.accounts DROP COLUMN owner;
ALTER TABLE rowtime.readers DROP COLUMN owner, DROP COLUMN reads
"""
"""Undoes what versions 5 and 6 have changed."""
BEFORE_4 = """
DROP FUNCTION rowtime.require_era CASCADE;
ALTER TABLE rowtime.heads DROP COLUMN era, ADD PRIMARY KEY (stream);
ALTER TABLE rowtime.producers DROP COLUMN era, ADD PRIMARY KEY (stream, name);
CREATE INDEX floors ON rowtime.producers (stream, status, floor NULLS FIRST, name)
    WHERE status IN ('attached', 'idle', 'expected');
DROP FUNCTION rowtime.begin_era
"""
"""Undoes what version 4 has changed."""


def test_tables_of_an_older_version_get_what_is_missing(postgres: Any) -> None:
    postgres.execute("CREATE DATABASE older", database="postgres")
    path = postgres.url("orders", database="older")
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="before", rowsImplyBounds=False) as sink:
        sink.sendRow(("2000-01-01T00:00Z", 1))
    calls = {
        1: [rt.describeStream],
        2: [lambda path: rt.createStream(path + "2", SCHEMA), rt.describeStream],
        3: [rt.describeStream],
    }
    for version, called in calls.items():
        for statement in f"{BEFORE_5};{BEFORE_4}".split(";"):
            postgres.execute(statement, database="older")
        postgres.execute("DROP FUNCTION rowtime.commit_plainly", database="older")
        if version == 1:
            tables = "rowtime.topic_cuts, rowtime.objects, rowtime.unnamed_objects"
            postgres.execute(f"DROP TABLE {tables}", database="older")
        postgres.execute(f"UPDATE rowtime.version SET version = {version}", database="older")
        for call in called:
            call(path)
        assert postgres.execute("SELECT version FROM rowtime.version", database="older") == [(VERSION,)]
    with rt.openSink(path, producer="kafka") as sink:
        sink.sendRowtimeBound("2020-01-01T00:00Z", cut={"orders": {0: 7}})
    _, known = rt.describeStream(path).producers
    assert known.cut == {"orders": {0: 7}}


def test_tables_of_a_newer_version_are_refused(postgres: Any) -> None:
    postgres.execute("CREATE DATABASE newer", database="postgres")
    path = postgres.url("orders", database="newer")
    rt.createStream(path, SCHEMA)
    postgres.execute("UPDATE rowtime.version SET version = 99", database="newer")
    for call in (rt.describeStream, lambda path: rt.createStream(path + "2", SCHEMA)):
        with pytest.raises(rt.StoreUnavailableError, match=r"version 99.*Upgrade spark-rowtime"):
            call(path)

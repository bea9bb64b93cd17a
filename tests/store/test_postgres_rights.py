"""What the users of a database need: the GRANTs of the guide, passwords outside of the path, and TLS."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import check_store, open_store
from tests.postgresserver import PostgresServer, programs
from tests.store.roles import SCHEMA, give, make_database
from tests.streams import send


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> str:
    """A database with a stream and the roles of the guide, where nobody may call a function without being granted."""
    owner = make_database(postgres, "rights")
    postgres.execute("REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA rowtime FROM PUBLIC", database="rights")
    give(postgres, "rights", owner)
    return "rights"


def test_a_reader_reads_and_registers_and_cannot_write(postgres: PostgresServer, database: str) -> None:
    with rt.openSink(postgres.url("orders", database=database), producer="shop", lease=None) as sink:
        send(sink, ("10:00", 1))
    path = postgres.url("orders", user="reader_ann_rights", database=database)
    with rt.openReader(path, name="alerts", order="arrival") as reader:
        assert [train.rows.num_rows for train in reader] == [1]
    assert rt.describeStream(path).rows == 1
    assert [stream.error for stream in rt.listStreams(postgres.url(user="reader_ann_rights", database=database))] == [
        None
    ]
    with pytest.raises(rt.StoreUnavailableError, match="lacks a privilege: permission denied"):
        rt.openSink(path, producer="other")


def test_who_may_only_read_by_a_setting_reads_on_when_a_lease_has_ended(
    postgres: PostgresServer, database: str
) -> None:
    """As on a standby. Some process that writes notes the end of the lease."""
    path = (
        postgres.url("orders", user="reader_ann_rights", database=database)
        + "?options=-cdefault_transaction_read_only%3Don"
    )
    with rt.openReader(path, order="arrival") as reader, open_store(path) as store:
        with open_store(postgres.url("orders", database=database)) as writer:
            writer.attach("silent", "holder", "{}", 1)
        before = store.head()
        assert [event.producer for event in store.snapshot().due] == ["silent"]
        assert not store.expire()
        assert (list(reader) != [], store.head()) == (before.rows > 0, before)
    with pytest.raises(rt.StoreUnavailableError, match="may only read"):
        rt.detachProducer(path, "silent")


def test_a_writer_writes_and_cannot_create_or_delete(postgres: PostgresServer, database: str) -> None:
    path = postgres.url("orders", user="writer_ann_rights", database=database)
    with rt.openSink(path, producer="feed", onLate="reject") as sink:
        send(sink, ("10:00", 1), promise="11:00")
        send(sink, ("9:00", 2))
    with rt.openSink(path, producer="kafka") as sink:
        sink.sendRowtimeBound("2020-01-01T00:00Z", cut={"orders": {0: 7}})
    with rt.openReader(path) as reader:
        assert sum(train.rows.num_rows for train in reader) >= 1
    rt.detachProducer(path, "feed")
    for call in (
        lambda p: rt.deleteStream(p, force=True),
        lambda p: rt.createStream(p + "2", SCHEMA),
        lambda p: rt.alterStream(p, add="b INT"),
    ):
        with pytest.raises(rt.StoreUnavailableError, match="lacks a privilege"):
            call(path)


def test_an_owner_creates_alters_removes_and_deletes(postgres: PostgresServer, database: str) -> None:
    path = postgres.url("second", user="owner_ann_rights", database=database)
    rt.createStream(path, SCHEMA, producers=["a"], retainBytes=1000)
    with rt.openSink(path, producer="a") as sink:
        for n in range(20):
            send(sink, (f"10:{n:02d}", n), promise=f"10:{n:02d}")
    rt.alterStream(path, add="coupon STRING")
    rt.copyStream(path, path + "-copy")
    rt.renameStream(path + "-copy", path + "-renamed")
    for one in (path, path + "-renamed"):
        rt.deleteStream(one, force=True)


@pytest.mark.parametrize("about", ['{"name": "x"}', "{", "7", '{"location": 7}', "[" * 2600])
def test_a_writer_cannot_have_an_owner_take_a_stream_for_a_copy_that_was_interrupted(
    postgres: PostgresServer, database: str, about: str
) -> None:
    """Nor may the owner's removal end at a note that no copy has written."""
    path = postgres.url("kept", user="owner_ann_rights", database=database)
    rt.createStream(path, SCHEMA, existOk=True)
    with rt.openSink(path, producer="shop") as sink:
        send(sink, ("10:00", 1))
    with rt.openReader(path, name="alerts") as reader:
        list(reader)
    ((number,),) = postgres.execute("SELECT id FROM rowtime.streams WHERE name = 'kept'", database=database)
    with postgres.connect(user="writer_ann_rights", database=database) as writer:
        for stream in (number, number + 1_000_000):
            writer.execute("INSERT INTO rowtime.unnamed_objects VALUES (%s, %s, 'copying', 0)", (stream, about))
    with open_store(path) as store:
        before = store.snapshot()
        store.gc()
        after = store.snapshot()
    assert [reader.name for reader in after.readers] == ["alerts"]
    assert (after.head, after.records) == (before.head, before.records)
    assert check_store(path).damage == []
    left = postgres.execute("SELECT stream FROM rowtime.unnamed_objects WHERE state = 'copying'", database=database)
    assert (number + 1_000_000 in [stream for (stream,) in left]) == ("x" not in about), "what is no note stays"
    postgres.execute("DELETE FROM rowtime.unnamed_objects WHERE state = 'copying'", database=database)
    rt.deleteStream(path, force=True)


def test_a_writer_whose_role_has_identifiers_quoted_writes(postgres: PostgresServer, database: str) -> None:
    postgres.execute(f"ALTER ROLE writer_bob_rights IN DATABASE {database} SET quote_all_identifiers = on")
    rt.createStream(postgres.url("quoted", database=database), SCHEMA)
    path = postgres.url("quoted", user="writer_bob_rights", database=database)
    with rt.openSink(path, producer="quoted") as sink:
        send(sink, ("10:00", 1), promise="11:00")
    assert rt.describeStream(path).rows == 1


def test_a_pooler_that_mixes_sessions_is_named(postgres: PostgresServer, database: str) -> None:
    """Another client of the pooler has changed the settings of the session."""
    rt.createStream(postgres.url("pooled", database=database), SCHEMA)
    path = postgres.url("pooled", user="writer_ann_rights", database=database)
    with rt.openSink(path, producer="pooled", linger="1 hour") as sink:
        send(sink, ("10:00", 1))
        sink._store._connection.call(lambda connection: connection.execute("SET search_path = public"))
        with pytest.raises(rt.StoreUnavailableError, match=r"lost its session: .*set pool_mode = session"):
            send(sink, ("10:01", 2))
        sink.flush()
    assert rt.describeStream(path).rows == 2


def test_a_password_comes_from_the_environment_or_a_file_and_is_shown_nowhere(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = postgres.url("secretive/orders", user="secretive")
    with postgres.login("secretive", "s3cret-pass"):
        monkeypatch.setenv("PGPASSWORD", "wrong-pass")
        with pytest.raises(rt.StoreUnavailableError, match="password authentication failed") as caught:
            rt.createStream(path, SCHEMA)
        assert "wrong-pass" not in f"{caught.value}{caught.value.values}"
        assert "Check the user, and the password in PGPASSWORD or ~/.pgpass." in str(caught.value)
        assert "Call again" not in str(caught.value)
        monkeypatch.setenv("PGPASSWORD", "s3cret-pass")
        rt.createStream(path, SCHEMA)
        monkeypatch.delenv("PGPASSWORD")
        file = tmp_path / "pgpass"
        file.write_text(f"127.0.0.1:{postgres.port}:*:secretive:s3cret-pass\n")
        file.chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", str(file))
        with rt.openSink(path, producer="shop") as sink, rt.openReader(path) as reader:
            send(sink, ("10:00", 1))
            listed = rt.listStreams(postgres.url("secretive/"))
            for folder, name in ((postgres.url(""), "secretive/orders"), (postgres.url("secretive/"), "orders")):
                assert re.search(rf"^{name}\s", CliRunner().invoke(main, ["list", folder]).output, re.MULTILINE)
            shown = f"{sink!r} {reader!r} {reader.position} {rt.describeStream(path)} {listed}"
        assert "s3cret" not in shown


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server with a certificate for 127.0.0.1, made for this test."""
    place = programs()
    if place is None or shutil.which("openssl") is None:
        pytest.skip("no PostgreSQL server, or no openssl to make a certificate")
    built = subprocess.run([place / "postgres", "--version"], capture_output=True, check=True)
    linked = subprocess.run(["ldd", place / "postgres"], capture_output=True, text=True, check=False)
    if "libssl" not in linked.stdout:
        pytest.skip(f"{built.stdout.decode().strip()} at {place} has no TLS; Debian's package has")
    server = PostgresServer(place)
    files = [server.data / "server.crt", server.data / "server.key"]
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*make, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    for file in files:
        shutil.chown(file, server.data.owner(), server.data.group())
    files[1].chmod(0o600)
    shutil.copy(files[0], tmp_path / "ca.pem")
    server.stop()
    server.start(ssl="on")
    yield server
    server.remove()


def test_tls_with_a_certificate_that_is_verified(encrypted: PostgresServer, tmp_path: Path) -> None:
    options = f"?sslmode=verify-full&sslrootcert={tmp_path}/ca.pem"
    path = encrypted.url("orders") + options
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        send(sink, ("10:00", 1))
        assert encrypted.execute("SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                                 "WHERE application_name = 'rowtime'") == [(True,)]  # fmt: skip
    (listed,) = rt.listStreams(encrypted.url() + options)
    assert (listed.path, listed.info and listed.info.rows) == (path, 1)
    other = tmp_path / "other.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-keyout", "/dev/null"]
    subprocess.run([*make, "-out", other], check=True, capture_output=True)
    with pytest.raises(rt.StoreUnavailableError, match="certificate verify failed"):
        rt.openReader(encrypted.url("orders") + f"?sslmode=verify-full&sslrootcert={other}")

"""Who may write a status must not decide which server, database or file whoever asks opens."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import open_store
from tests.store.streams import Writer
from tests.thief import Thief, thief

SCHEMA = "rowtime TIMESTAMP NOT NULL, n BIGINT"
AT = "2006-09-11T10:00:00Z"
SECRET = "s3cret-of-the-operator"


def written_by_query(target: str, *sources: str, position: dict[str, Any] | None = None) -> None:
    """A status of a query that says that it reads ``sources`` and writes ``target``."""
    told = [{"path": source, "position": position or {}} for source in sources]
    status = json.dumps({"query": "q", "batch": 0, "sources": told})
    with open_store(target) as store:
        store.commit(Writer(store, "spark-q").commit([1], query_status=status))


def stream_at(place: Path) -> str:
    rt.createStream(str(place), SCHEMA)
    return str(place)


@pytest.fixture
def hourly(tmp_path: Path) -> str:
    return stream_at(tmp_path / "streams" / "hourly.rowtime")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The attacker's server. Whoever asks has a password in the environment."""
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with thief() as found:
        yield found


def evil(server: Thief, more: str = "") -> str:
    return f"postgresql://x@127.0.0.1:{server.port}/shop/orders{more}"


def test_a_status_does_not_lead_a_reader_of_a_directory_to_a_server(hourly: str, server: Thief) -> None:
    written_by_query(hourly, evil(server))
    token = rt.describeStream(hourly).path and f"rowtime1:{'0' * 32}:1:-"
    found = rt.why(hourly, AT)
    with pytest.raises(rt.WaitTimeoutError, match="not followed: postgresql://x@127"):
        rt.wait(token, hourly, timeout="0 s")
    assert (server.calls, server.heard) == (0, b"")
    assert found.cause is rt.Cause.NOT_FOLLOWED
    assert found.notFollowed == (evil(server),)
    assert f"not followed: {evil(server)}" in found.note


def test_the_answer_names_what_was_not_followed_where_all_is_complete(hourly: str, server: Thief) -> None:
    written_by_query(hourly, evil(server))
    rt.closeProducer(hourly, "spark-q", complete=True)
    found = rt.why(hourly)
    assert (found.complete, found.notFollowed, server.calls) == (True, (evil(server),), 0)
    shown = CliRunner().invoke(main, ["why", hourly]).stdout
    assert "not followed" in shown


def test_a_stream_leads_to_those_of_its_folder_and_of_folders_that_are_named(hourly: str, tmp_path: Path) -> None:
    beside, below = stream_at(tmp_path / "streams" / "a.rowtime"), stream_at(tmp_path / "streams" / "eu" / "b.rowtime")
    elsewhere = stream_at(tmp_path / "elsewhere" / "c.rowtime")
    for source in (beside, below, f"file://{beside}"):
        written_by_query(hourly, source)
        assert rt.why(hourly, AT).cause is rt.Cause.NO_PRODUCERS, source
    written_by_query(hourly, elsewhere)
    assert rt.why(hourly, AT).cause is rt.Cause.NOT_FOLLOWED
    for folder in (str(tmp_path / "elsewhere"), elsewhere):
        assert rt.why(hourly, AT, within=[folder]).cause is rt.Cause.NO_PRODUCERS
    shown = CliRunner().invoke(main, ["why", hourly, "--at", AT, "--within", str(tmp_path / "elsewhere")]).stdout
    assert "noProducers" in shown


def test_a_link_or_dots_lead_nowhere_else(hourly: str, tmp_path: Path) -> None:
    elsewhere = stream_at(tmp_path / "elsewhere" / "c.rowtime")
    (tmp_path / "streams" / "link").symlink_to(elsewhere)
    for source in (f"{tmp_path}/streams/link", f"{tmp_path}/streams/../elsewhere/c.rowtime", f"{tmp_path}/streams2"):
        written_by_query(hourly, source)
        assert rt.why(hourly, AT).cause is rt.Cause.NOT_FOLLOWED, source


def test_a_database_leads_to_its_own_streams_with_the_options_of_who_asks(postgres: Any, server: Thief) -> None:
    orders, hourly = postgres.url("trust-orders"), postgres.url("trust-hourly")
    for path in (orders, hourly):
        rt.createStream(path, SCHEMA)
    at_home = f"postgresql://nobody@127.0.0.1:{postgres.port}/rowtime/trust-orders?connect_timeout=1"
    written_by_query(hourly, at_home)  # the user of who asks, as "nobody" could not connect
    assert rt.why(hourly, AT).cause is rt.Cause.NO_PRODUCERS
    others = [
        evil(server),
        f"postgresql://127.0.0.1:{postgres.port}/rowtime/trust-orders?port={server.port}",
        f"postgresql://127.0.0.1:{postgres.port}/rowtime/trust-orders?hostaddr=127.0.0.2",
        f"postgresql://127.0.0.1:{postgres.port}/postgres/trust-orders",
        "/etc",
        "memory://orders",
    ]
    for other in others:
        written_by_query(hourly, other)
        found = rt.why(hourly, AT)
        assert (found.cause, found.notFollowed) == (rt.Cause.NOT_FOLLOWED, (other,))
    assert server.calls == 0


@pytest.mark.parametrize(
    "path", ["", "\x00", "\ud800", "postgresql://", "postgresql://u:pw@h/db/s", "s3://b/c", "x" * 9999]
)
def test_paths_that_are_none_are_not_followed(hourly: str, path: str) -> None:
    written_by_query(hourly, path)
    assert rt.why(hourly, AT).cause is rt.Cause.NOT_FOLLOWED

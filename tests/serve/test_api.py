"""What the server answers without a browser: JSON, metrics, headers, and who may ask."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import open_store
from tests.serve.conftest import SCHEMA, Server
from tests.store.streams import Writer

Serve = Callable[..., Server]
AT_TEN = "2026-01-05T10:00:00Z"


def get(server: Server, path: str) -> bytes:
    with urllib.request.urlopen(server.url + path, timeout=120) as answer:
        return answer.read()


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def asked(server: Server, path: str, host: str, method: str = "GET") -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.port), timeout=120)
    with closing(connection):
        connection.request(method, path, headers={"Host": host})
        with connection.getresponse() as answer:
            return Answer(answer.status, answer.headers, answer.read())


def refusal(server: Server, path: str) -> tuple[int, Any]:
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(server, path)
    with caught.value as error:
        return error.code, json.loads(error.read())


def send(path: str, *times: str) -> None:
    with rt.openSink(path, producer="Berlin", onLate="reject") as sink:
        sink.sendRows([(time, 1) for time in times])
        sink.flush()
        sink.sendRow((times[0], 2))


def test_api_has_what_describe_and_why_say(orders: str, serve: Serve) -> None:
    send(orders, AT_TEN)
    server = serve(orders)
    shown = CliRunner().invoke(main, ["describe", orders, "--json"]).stdout
    answer = json.loads(get(server, "api/describe"))
    assert {**answer, "producers": None} == {**json.loads(shown), "producers": None}
    assert "checkpoint" not in answer["producers"][0]
    assert json.loads(get(server, "api/streams")) == {"streams": [orders], "tables": []}
    why = json.loads(get(server, f"api/why?at={AT_TEN}&stream={quote(orders)}"))
    assert (why["complete"], why["holder"], why["cause"]) == (False, "Oslo", "expected")


def test_only_streams_that_are_served_are_answered(orders: str, tmp_path: Path, serve: Serve) -> None:
    other = str(tmp_path / "other.rowtime")
    rt.createStream(other, SCHEMA)
    server = serve(orders)
    for name in (other, "../etc", ""):
        status, said = refusal(server, f"api/describe?stream={quote(name)}")
        assert (status, said["kind"]) == (404, "StreamNotFoundError")
    assert refusal(server, "api/why?at=yesterday")[0] == 400
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(server, "..%2f..%2fapp.py")


def test_a_folder_shows_its_streams_and_those_that_come(orders: str, tmp_path: Path, serve: Serve, monkeypatch) -> None:
    server = serve(str(tmp_path))
    assert json.loads(get(server, "api/streams")) == {"streams": [orders], "tables": []}
    from spark_rowtime.serve import served

    monkeypatch.setattr(served, "LIST_SECONDS", 0.0)
    listed = served.Served([str(tmp_path)])
    rt.createStream(str(tmp_path / "later.rowtime"), SCHEMA)
    assert listed.paths() == [str(tmp_path / "later.rowtime"), orders]


def test_a_stream_under_several_paths_is_one(orders: str, tmp_path: Path) -> None:
    """Else a sum over the metrics of streams would count it twice."""
    from spark_rowtime.serve.served import Served

    (tmp_path / "link").symlink_to(orders)
    named = [str(tmp_path / "link"), orders, f"{orders}/", str(tmp_path)]
    assert Served(named).paths() == [str(tmp_path / "link")]
    away = "postgresql://127.0.0.1:1/database/stream"
    assert Served([orders, away]).paths() == [orders, away], "the page says what is wrong with it"
    with pytest.raises(rt.InvalidOptionError, match="must be NAME or NAME:PORT"):
        Served([orders, "postgresql://host:notaport/database/stream"])


def test_of_a_database_its_streams_are_served_also_those_of_later(
    postgres: Any, monkeypatch: pytest.MonkeyPatch, orders: str
) -> None:
    from spark_rowtime.serve import served

    monkeypatch.setattr(served, "LIST_SECONDS", 0.0)
    with postgres.connect() as connection:
        connection.execute("CREATE DATABASE served")
    database = f"{postgres.url(database='served')}?application_name=page"
    with pytest.raises(rt.InvalidOptionError, match="names a database, but no stream in it"):
        served.Served([orders, database])
    first, later = (f"{postgres.url(name, database='served')}?application_name=page" for name in ("first", "later"))
    rt.createStream(first, SCHEMA)
    listed = served.Served([orders, database])
    assert listed.paths() == [orders, first]
    rt.createStream(later, SCHEMA)
    assert listed.paths() == [orders, first, later]


def test_a_database_that_is_away_at_the_start_hides_no_stream(orders: str) -> None:
    from spark_rowtime.serve.served import Served

    with socket.create_server(("127.0.0.1", 0)) as closed:
        database = f"postgresql://127.0.0.1:{closed.getsockname()[1]}/shop"
    assert Served([orders, database]).paths() == [orders]


def test_metrics_are_those_of_the_streams(orders: str, serve: Serve) -> None:
    hostile = 'a"} 1\nrowtime_stream_rows_total{stream="b'
    with closing(open_store(orders)) as store:  # no sink takes such a name today
        store.commit(Writer(store, hostile).commit([1]))
        send(orders, AT_TEN, "2026-01-05T11:00:00Z")
        families = text_string_to_metric_families(get(serve(orders), "metrics").decode())
    found = {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}
    assert found["rowtime_stream_up", orders] == 1
    assert found["rowtime_stream_rows_total", orders] == 3
    assert found["rowtime_stream_rows_rejected_total", orders] == 1
    assert found["rowtime_producer_rows_total", *sorted((orders, hostile))] == 1
    assert found["rowtime_producer_bound_seconds", *sorted((orders, "Berlin"))] == 1767610800
    assert found["rowtime_producer_holds_clock", *sorted((orders, "Oslo"))] == 1
    assert found["rowtime_producer_status", *sorted((orders, "Oslo", "expected"))] == 1
    assert ("rowtime_stream_bound_seconds", orders) not in found


def test_a_damaged_stream_is_shown_as_one_that_cannot_be_read(orders: str, serve: Serve) -> None:
    for file in Path(orders).glob("catalog.db*"):
        file.write_bytes(b"no catalog")
    server = serve(orders)
    assert refusal(server, "api/describe")[0] == 503
    families = text_string_to_metric_families(get(server, "metrics").decode())
    assert [s.value for family in families for s in family.samples if s.name == "rowtime_stream_up"] == [0]


def test_hosts_that_may_be_asked(orders: str, serve: Serve) -> None:
    server = serve(orders, "--allow-host", "rowtime.example")
    for host in ("127.0.0.1", "localhost", "[::1]", "192.0.2.7", "rowtime.example"):
        assert asked(server, "/api/streams", f"{host}:{server.port}").status == 200, host


HOSTILE_HOSTS = [
    *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "[::"),
    *("evil.example@localhost", "evil.example:80@127.0.0.1", "localhost/evil.example", "127.0.0.1?evil.example"),
    *("localhost#evil.example", "[::1]evil.example", "[::1%evil.example]", "localhost:port", "localhost:123456"),
    *("local\thost", "\u00ff", "localhost,evil.example", "[evil.example]", "[v1.evil]", "x" * 8000),
]  # fmt: skip


def test_another_name_that_points_here_is_refused(orders: str, serve: Serve) -> None:
    """DNS rebinding: a page elsewhere lets its own name point to this address."""
    server = serve(orders)
    for host in HOSTILE_HOSTS:
        for path in ("/", "/api/streams", "/api/streams/", "/api/live", "/metrics"):
            answer = asked(server, path, host)
            assert answer.status in (400, 421), host
            assert orders.encode() not in answer.body


def test_each_answer_has_the_security_headers_and_nothing_can_be_changed(orders: str, serve: Serve) -> None:
    server = serve(orders)
    for path in ("/", "/page.js", "/api/streams", "/api/describe?stream=x", "/metrics", "/none"):
        answer = asked(server, path, "localhost")
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert (answer.headers["X-Content-Type-Options"], answer.headers["X-Frame-Options"]) == ("nosniff", "DENY")
        assert answer.headers["Access-Control-Allow-Origin"] is None
        for method in ("POST", "PUT", "DELETE"):
            assert asked(server, path, "localhost", method).status in (404, 405)


def test_events_begin_with_the_whole_and_go_on_with_what_changed(orders: str, serve: Serve) -> None:
    with urllib.request.urlopen(serve(orders).url + "api/live", timeout=120) as events:
        messages = (json.loads(line.removeprefix(b"data: ")) for line in events if line.startswith(b"data: "))
        first = next(messages)
        assert (first["full"], [p["name"] for p in first["producers"]]) == (True, ["Berlin", "Oslo"])
        send(orders, "2026-01-05T09:00:00Z", AT_TEN)
        later = next(message for message in messages if message["late"])
        assert [row["rowtime"]["text"] for row in later["late"]] == ["2026-01-05T09:00:00Z"]
        assert {p["name"] for p in later["producers"]} <= {"Berlin"}


def test_what_cannot_be_served_is_said_in_one_message(tmp_path: Path, orders: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments in ([str(tmp_path / "none.rowtime")], [orders, "--port", port], ["memory://other"]):
            result = CliRunner().invoke(main, ["serve", *arguments])
            assert (result.exit_code, result.stderr[:7], result.stdout) == (1, "Error: ", "")


def test_without_the_extra_it_says_how_to_install_it(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("spark_rowtime.cli.serve"), "_NEEDED", ("no_such_module",))
    result = CliRunner().invoke(main, ["serve", orders])
    assert result.exit_code == 1
    assert "pip install 'spark-rowtime[serve]'" in result.stderr

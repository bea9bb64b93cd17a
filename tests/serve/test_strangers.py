"""What is stored in streams, and what clients send, must not turn the server against others, or silence it."""

import json
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.serve import served as served_module
from spark_rowtime.serve import watched
from spark_rowtime.serve.served import Served
from tests.diagnosis.test_not_followed import SECRET, stream_at, written_by_query
from tests.serve.conftest import Server
from tests.thief import thief

Serve = Callable[..., Server]
AT = "2026-01-05T10:00:00Z"


def get(server: Server, path: str) -> bytes:
    with urllib.request.urlopen(server.url + path, timeout=120) as answer:
        return answer.read()


def test_an_account_leads_the_page_only_to_streams_that_are_served(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly, orders = stream_at(tmp_path / "hourly"), stream_at(tmp_path / "orders")
    private = stream_at(tmp_path / "private")  # in the same folder, but not served
    monkeypatch.setenv("PGPASSWORD", SECRET)
    with thief() as evil:
        server = serve(hourly, orders)
        for stored in (f"postgresql://x@127.0.0.1:{evil.port}/shop/orders", private):
            written_by_query(hourly, stored)
            said = get(server, f"api/why?at={AT}&stream={hourly}")
            assert json.loads(said)["cause"] == "notFollowed"
            assert stored.encode() not in said
            with urllib.request.urlopen(f"{server.url}api/live", timeout=120) as live:
                lines = (line for line in live if b"notFollowed" in line or b"not followed" in line)
                assert stored.encode() not in next(lines)
        written_by_query(hourly, orders)
        assert json.loads(get(server, f"api/why?at={AT}&stream={hourly}"))["cause"] == "noProducers"
        assert (evil.calls, evil.heard) == (0, b"")
    assert rt.why(hourly, AT).cause is rt.Cause.NO_PRODUCERS


def test_what_one_stream_or_folder_has_does_not_hide_the_others(orders: str, tmp_path: Path, serve: Serve) -> None:
    shutil.copytree(orders, f"{tmp_path}/\udcff.rowtime")  # the byte ff, which UTF-8 does not have
    broken = stream_at(tmp_path / "broken")
    for file in Path(broken).glob("catalog.db*"):
        file.write_bytes(b"no catalog")
    server = serve(str(tmp_path))
    assert json.loads(get(server, "api/streams"))["streams"] == [broken, orders]
    assert b'rowtime_stream_up{stream="' + orders.encode() + b'"} 1.0' in get(server, "metrics")
    shutil.move(broken, tmp_path.parent / f"{tmp_path.name}-away")
    assert json.loads(get(server, f"api/describe?stream={orders}"))["stream"] == orders


def test_a_position_in_a_topic_that_is_none_is_not_told(orders: str, serve: Serve) -> None:
    for offset, end in (1, int("9" * 400)), (None, 5), (7, 12):
        with rt.openSink(orders, producer=f"shop-{offset}") as sink:
            sink.flush(checkpoint=json.dumps({"topicId": "x", "offset": offset, "end": end}))
    told = get(serve(orders), "metrics").decode()
    lags = [line for line in told.splitlines() if line.startswith("rowtime_producer_lag_messages{")]
    assert lags == [f'rowtime_producer_lag_messages{{producer="shop-7",stream="{orders}"}} 5.0']


@pytest.mark.parametrize("call", ["describe", "why"])
def test_what_nobody_has_thought_of_is_said_of_its_stream_alone(
    orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    other = stream_at(tmp_path / "other")

    def breaks(path: str, *args: object) -> object:
        if path == other:
            raise TypeError("unheard of")
        return whole(path, *args)

    served = Served([orders, other])
    place = (watched, "read_shown") if call == "describe" else (served, "why")
    whole = getattr(*place)
    monkeypatch.setattr(*place, breaks)
    streams = [watched.WatchedStream(path, served) for path in (other, orders)]
    for _ in range(2):
        said = [stream.look() for stream in streams]
    assert ("TypeError" in said[0]["error"], said[1]["error"]) == (True, None)


def test_the_places_of_all_streams_are_not_looked_up_for_each_answer(
    orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hourly = stream_at(tmp_path / "hourly")
    written_by_query(hourly, orders)
    monkeypatch.setattr(served_module, "LIST_SECONDS", 3600.0)
    asked, place_of = list[str](), served_module.place_of
    monkeypatch.setattr(served_module, "place_of", lambda path: (asked.append(path), place_of(path))[1])
    served = Served([hourly, orders])
    for _ in range(3):
        assert not served.why(hourly, AT).notFollowed
    assert asked.count(hourly) == 1


@contextmanager
def half_sent(
    server: Server, count: int, text: bytes = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
) -> Iterator[list[socket.socket]]:
    """Clients that begin a request and send no more."""
    with ExitStack() as opened:
        clients = []
        for _ in range(count):
            clients.append(opened.enter_context(socket.create_connection(("127.0.0.1", int(server.port)), timeout=120)))
            clients[-1].sendall(text)
        yield clients


def test_clients_that_send_half_of_a_request_keep_nobody_out(orders: str, serve: Serve) -> None:
    server = serve(orders, files=128)
    with half_sent(server, 200):
        for path in ("", "api/streams", f"api/describe?stream={orders}", "metrics"):
            get(server, path)


@pytest.mark.long
def test_a_request_that_is_not_sent_in_time_ends(orders: str, serve: Serve) -> None:
    with half_sent(serve(orders), 1) as (client,), suppress(ConnectionResetError):
        assert client.recv(1) == b""


def test_as_many_look_as_may_and_questions_are_answered(orders: str, serve: Serve) -> None:
    server = serve(orders, files=128)
    with ExitStack() as pages:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            for _ in range(64):
                pages.enter_context(urllib.request.urlopen(f"{server.url}api/live", timeout=120)).readline()
        assert json.loads(get(server, "api/streams")) == {"streams": [orders], "tables": []}


def test_a_visitor_learns_no_checkpoint_no_values_of_keys_and_no_files(
    orders: str, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    rt.closeProducer(orders, "Oslo")
    with rt.openSink(orders, producer="Berlin", inOrderPer="n") as sink:
        for second in range(3):
            sink.sendRow((f"2026-01-05T10:00:0{second}Z", 777_000 + second))
        sink.flush(checkpoint="s3cret-place")
        for name in ("gone", "there"):
            rt.openReader(orders, name=f"file:{tmp_path}/{name}/sources/0").close()
        (tmp_path / "there").mkdir()
        server = serve(orders)
        answers = [
            get(server, path) for path in ("api/describe", "api/why", "api/why?at=2026-01-05T11:00:00Z", "metrics")
        ]
        with urllib.request.urlopen(f"{server.url}api/live", timeout=120) as live:
            answers += [next(line for line in live if part in line) for part in (b'"full": true', b'"why"')]
    assert b'"key"' in answers[2]
    for answer in answers:
        for secret in (b"s3cret-place", b"77700", b"checkpointGone", b"checkpoint is gone"):
            assert secret not in answer, (secret, answer)


@pytest.mark.parametrize(
    "path", [f"postgresql://me:{SECRET}@127.0.0.1:9/shop/orders", f"delta:s3://KEY:{SECRET}@bucket/orders", "kafka://"]
)
def test_a_path_that_nobody_may_see_is_not_served(path: str, orders: str) -> None:
    """The page shows each path that was named, also of a stream that does not open."""
    with pytest.raises(rt.RowtimeError) as caught:
        Served([orders, path])
    assert SECRET not in str(caught.value)
    assert isinstance(caught.value, rt.InvalidOptionError) or path == "kafka://"

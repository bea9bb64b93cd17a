"""Announcements over HTTP, against a real server that fails, hangs and dies: all in order, none left out."""

import json
import logging
import socket
import sys
import threading
from contextlib import closing, suppress
from typing import Any

import pytest
import urllib3

import spark_rowtime as rt
from spark_rowtime.announce.announcer import announcements, repetitions
from spark_rowtime.announce.http_client import _Deadline, wait_seconds
from tests.announce.server import Say, Server
from tests.announce.streams import stream_with
from tests.servers import KeptPort

SECRET = "t0p/s3cret?"


def three_hours() -> str:
    return stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T12:00:00Z")


def announce(
    path: str, to: str, delays: tuple[float, ...] = (1.0, 2.0, 4.0), **options: Any
) -> tuple[list[str], list[float]]:
    """The hours that were announced, and the seconds waited for."""
    waits: list[float] = []
    options = {"timeout": "240 s", **options}
    periods = announcements(path, to, "1 h", None, "earliest", False, "test", options, delays, waits.append)
    return [period.key[11:13] for period in periods], waits


def taken(server: Server) -> list[str]:
    return [asked.json["key"][11:13] for asked in server.taken]


def test_one_post_for_each_hour_with_a_json_body(server: Server) -> None:
    path = three_hours()
    assert rt.announceTo(path, f"http:{server.url}/hooks/hours", every="1 hour") == 3
    first = server.asked[0]
    assert (first.method, first.path) == ("POST", "/hooks/hours")
    assert first.headers["content-type"] == "application/json"
    assert first.json == {
        "stream": path,
        "every": "1h",
        "key": "2006-09-11T09:00:00",
        "start": "2006-09-11T09:00:00Z",
        "end": "2006-09-11T10:00:00Z",
    }
    assert taken(server) == ["09", "10", "11"]
    assert len({asked.headers["host"] for asked in server.asked}) == 1


TROUBLE = {
    "500": (Say(500), 1.0),
    "503 and Retry-After": (Say(503, headers=(("Retry-After", "17"),)), 17.0),
    "429 and Retry-After": (Say(429, headers=(("Retry-After", "90"),)), 90.0),
    "408": (Say(408), 1.0),
    "hangs": (Say(hang=True), 1.0),
    "dies": (Say(die=True), 1.0),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_call_that_is_not_taken_is_repeated_before_the_next(
    server: Server, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that is never answered has less time than the others, which may take long on a busy machine."""
    say, wait = TROUBLE[trouble]
    server.script.extend([Say(), say])
    begin, request = _Deadline.__enter__, urllib3.PoolManager.request

    def hangs() -> bool:
        return bool(server.script) and server.script[0].hang

    def enter(deadline: _Deadline) -> None:
        deadline._seconds = 1.0 if hangs() else 240.0
        begin(deadline)

    def ask(pool: urllib3.PoolManager, *arguments: Any, **options: Any) -> Any:
        return request(pool, *arguments, **options, **({} if hangs() else {"timeout": 240}))

    monkeypatch.setattr(_Deadline, "__enter__", enter)
    monkeypatch.setattr(urllib3.PoolManager, "request", ask)
    assert announce(three_hours(), server.url, timeout="1 s") == (["09", "10", "11"], [wait])
    assert [asked.json["key"][11:13] for asked in server.asked] == ["09", "10", "10", "11"]
    assert taken(server) == ["09", "10", "11"]


def test_repetitions_wait_longer_and_longer_and_start_again_with_the_next_hour(server: Server) -> None:
    server.script.extend([Say(500), Say(502), Say(503), Say(), Say(500)])
    assert announce(three_hours(), server.url) == (["09", "10", "11"], [1.0, 2.0, 4.0, 1.0])


def test_after_all_repetitions_it_gives_up_and_the_next_run_begins_with_that_hour(server: Server) -> None:
    path = three_hours()
    server.script.extend([Say(), Say(503, b"try  again\nlater"), Say(500), Say(504)])
    with pytest.raises(rt.AnnouncementError, match="was not taken in 3 attempt") as caught:
        announce(path, server.url, delays=(1.0, 2.0))
    assert caught.value.values == {"stream": path, "period": "2006-09-11T10:00:00", "status": 504, "attempts": 3}
    assert announce(path, server.url) == (["10", "11"], [])
    assert taken(server) == ["09", "10", "11"]


HEADERS, BODY = b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
HANDSHAKE = b"\x16\x03\x03\x40\x00"
"""The begin of a message of TLS, of 16,384 bytes."""


@pytest.mark.parametrize(
    ("scheme", "begin", "resolving"),
    [("http", HEADERS, 0), ("http", BODY, 0), ("http", BODY, 0.6), ("https", HANDSHAKE, 0)],
)
def test_a_server_that_sends_byte_by_byte_is_given_up(
    monkeypatch: pytest.MonkeyPatch, scheme: str, begin: bytes, resolving: float
) -> None:
    """The limit is for the whole call, also if its time passes while the name is resolved."""
    over, resolve = threading.Event(), socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda *name: over.wait(resolving) or resolve(*name))

    def drip(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            client.sendall(begin)
            while not over.wait(0.05):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: [drip(listening.accept()[0]) for _ in range(2)], daemon=True)
        thread.start()
        try:
            with pytest.raises(rt.AnnouncementError, match="no answer within the time limit"):
                announce(three_hours(), f"{scheme}://127.0.0.1:{listening.getsockname()[1]}/", (1.0,), timeout="500 ms")
        finally:
            over.set()
            thread.join(20)


def test_a_token_in_clear_is_warned_of_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    to = "http://hooks.invalid/x"
    for headers in ({"Authorization": "Bearer {env:TOKEN}"}, {"X-Kind": "hours"}):
        with pytest.raises(rt.AnnouncementError):
            announce(three_hours(), to, delays=(1.0,), headers=headers)
    said = [record.getMessage() for record in caplog.records if "without encryption" in record.getMessage()]
    assert len(said) == 1
    assert "http://hooks.invalid" in said[0]
    assert SECRET not in caplog.text


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 422])
def test_a_refusal_is_not_repeated(server: Server, status: int) -> None:
    server.script.append(Say(status, b'{"detail": "no such hook"}', (("Location", "/other"),)))
    with pytest.raises(
        rt.AnnouncementError, match=f'was refused: .* status {status}: {{"detail": "no such hook"}}'
    ) as caught:
        announce(three_hours(), server.url)
    assert caught.value.values["status"] == status
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [200, 400])
def test_the_status_counts_also_where_the_body_cannot_be_decoded(server: Server, status: int) -> None:
    """What a proxy says of a body is often wrong. The target has taken the call, or refused it, all the same."""
    server.script.append(Say(status, b"plain text", (("Content-Encoding", "gzip"),)))
    if status == 200:
        assert announce(three_hours(), server.url) == (["09", "10", "11"], [])
        return
    with pytest.raises(rt.AnnouncementError, match=r"was refused: .* was answered with status 400\. It stays"):
        announce(three_hours(), server.url)


def test_of_an_answer_that_is_no_http_only_the_begin_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    def babble() -> None:
        for _ in range(2):
            client = listening.accept()[0]
            with client:
                client.recv(65536)
                client.sendall(b"\xff" * 60_000 + b"\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=babble, daemon=True)
        thread.start()
        with pytest.raises(rt.AnnouncementError, match="BadStatusLine") as caught:
            announce(three_hours(), f"http://127.0.0.1:{listening.getsockname()[1]}/", (1.0,))
        thread.join(20)
    assert len(str(caught.value)) < 1000
    assert all(len(record.getMessage()) < 1000 for record in caplog.records)


def test_nobody_listens() -> None:
    refused = pytest.raises(rt.AnnouncementError, match=r"POST http://127.0.0.1:\d+: .*Connection refused")
    with closing(KeptPort()) as port, refused:
        announce(three_hours(), f"http://127.0.0.1:{port}/path", delays=(1.0,))


def test_a_call_has_a_key_that_stays_where_it_is_repeated_also_by_the_next_run(server: Server) -> None:
    path = three_hours()
    server.script.extend([Say(), Say(503), Say(503)])
    with pytest.raises(rt.AnnouncementError):
        announce(path, server.url, delays=(1.0,))
    announce(path, server.url)
    first, *again, last = [asked.headers["idempotency-key"] for asked in server.asked]
    assert len(again) == 3
    assert len({first, *again, last}) == 3
    announce(three_hours(), server.url, headers={"Idempotency-Key": "{key}"})
    assert server.asked[-1].headers["idempotency-key"] == "2006-09-11T11:00:00"
    announce(three_hours(), server.url)
    other = {asked.headers["idempotency-key"] for asked in server.asked[-3:]}
    assert not other & {first, *again, last}, "the keys of another stream"


def test_a_target_that_has_a_call_after_a_lost_answer_says_so_by_its_own_status(server: Server) -> None:
    path = three_hours()
    server.script.extend([Say(), Say(die=True), Say(409, b"hour exists")])
    assert announce(path, server.url, taken=[409]) == (["09", "10", "11"], [1.0])
    server.script.append(Say(410))
    with pytest.raises(rt.AnnouncementError, match="status 410"):
        announce(three_hours(), server.url, taken=[409])
    server.script.append(Say(409))
    with pytest.raises(rt.AnnouncementError, match=r"taken before.*--taken 409"):
        announce(three_hours(), server.url)


def test_who_follows_repeats_a_call_until_the_target_is_back(server: Server) -> None:
    """As through an upgrade of a scheduler, which takes longer than ten repetitions."""
    server.script.extend([Say(503)] * 40)
    path, waits = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z"), []
    again = repetitions(None, follow=True)
    periods = announcements(path, server.url, "1 h", None, "earliest", True, "test", {}, again, waits.append)
    assert next(periods).key == "2006-09-11T09:00:00"
    assert (len(waits), waits[:3], waits[-1]) == (40, [1.0, 2.0, 4.0], 60.0)
    assert [len(list(repetitions(*given))) for given in ((None, False), (3, True), (12, False))] == [10, 3, 12]


def test_url_headers_and_body_are_templates(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    announce(
        three_hours(),
        f"http:{server.url}/{{key}}/{{env:TOKEN}}",
        body='{"text": "{stream} {start}", "n": {"m": []}, "t": "{env:TOKEN}"}',
        headers={"Authorization": "Bearer {env:TOKEN}", "X-Hour": "{end}"},
        key="%Y/%m/%d %H",
        method="PUT",
    )
    first = server.asked[0]
    assert (first.method, first.path) == ("PUT", f"/2006%2F09%2F11%2009/{SECRET}")
    assert first.headers["authorization"] == f"Bearer {SECRET}"
    assert first.headers["x-hour"] == "2006-09-11T10:00:00Z"
    assert first.json["text"].startswith("memory://")
    assert first.json["text"].endswith(" 2006-09-11T09:00:00Z")
    assert (first.json["n"], first.json["t"]) == ({"m": []}, SECRET)


def test_text_that_is_not_ascii_reaches_the_server(server: Server) -> None:
    announce(
        three_hours(),
        server.url + "/{key}",
        body='{"text": "Größe {key}"}',
        key="%Y-%m-%d %H Uhr ü",
        headers={"X": "{key}"},
    )
    first = server.asked[0]
    assert first.json == {"text": "Größe 2006-09-11 09 Uhr ü"}
    assert first.path == "/2006-09-11%2009%20Uhr%20%C3%BC"
    assert first.headers["x"] == "2006-09-11%2009%20Uhr%20%C3%BC"


def test_a_body_that_is_no_json_has_its_own_content_type(server: Server) -> None:
    announce(three_hours(), server.url, body="hour={key}", headers={"Content-Type": "text/plain"})
    assert server.asked[0].body == b"hour=2006-09-11T09:00:00"
    assert server.asked[0].headers["content-type"] == "text/plain"


def test_get_has_no_body(server: Server) -> None:
    announce(three_hours(), server.url + "/ping", method="GET")
    assert (server.asked[0].method, server.asked[0].path, server.asked[0].body) == ("GET", "/ping", b"")


def test_no_secret_is_in_errors_and_logs(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The server sends back what it was sent; urllib3 logs the path of each URL."""
    monkeypatch.setenv("HOOK", "T0%2fH00K")
    monkeypatch.setenv("TOKEN", "t0k&n")
    echo = b"you sent T0/H00K T0%2FH00K t0k&n t0k%26n literal-secret T0%2fH00K t0k&amp;n" * 30
    server.script.extend([Say(500, echo), Say(403, echo)])
    caplog.set_level(logging.DEBUG)
    with pytest.raises(rt.AnnouncementError) as caught:
        announce(
            three_hours(),
            f"{server.url}/{{env:HOOK}}?token={{env:TOKEN}}",
            headers={"X-Token": "{env:TOKEN}", "Authorization": "literal-secret"},
        )
    assert server.asked[0].path == "/T0%2FH00K?token=t0k&n"
    shown = str(caught.value) + repr(caught.value.values) + caplog.text
    assert "you sent *** *** *** *** *** *** ***" in shown
    assert not any(secret in shown for secret in ("H00K", "t0k", "literal-secret"))
    assert caught.value.__suppress_context__


def test_a_secret_that_is_written_into_the_url_is_not_shown_where_the_server_sends_it_back(server: Server) -> None:
    server.script.append(Say(404, b"Cannot POST /hook/s3cret/2006-09-11T09 with t0ken; 2006-09-11T09:00:00Z"))
    with pytest.raises(rt.AnnouncementError, match=r"Cannot POST \*\*\* with \*\*\*; 2006-09-11T09:00:00Z") as caught:
        announce(three_hours(), f"{server.url}/hook/s3cret/{{key}}?token=t0ken&at={{start}}", key="%Y-%m-%dT%H")
    assert "status 404" in str(caught.value)


def test_the_times_in_a_url_are_no_secrets(server: Server) -> None:
    server.script.append(Say(404, b"nothing at 2006-09-11T09:00:00Z"))
    with pytest.raises(rt.AnnouncementError, match="nothing at 2006-09-11T09:00:00Z"):
        announce(three_hours(), f"{server.url}/hook?at={{start}}")


def test_no_secret_is_in_errors_as_json_or_the_name_of_a_host_has_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = 'q"u\\o\u00e9  t3'
    monkeypatch.setenv("BODY", secret)
    server.script.append(Say(422, json.dumps({"input": secret}).encode()))
    with pytest.raises(rt.AnnouncementError, match=r"\*\*\*") as caught:
        announce(three_hours(), server.url, body='{"a": "{env:BODY}"}')
    assert server.asked[0].json == {"a": secret}
    assert not any(part in str(caught.value) for part in ("q", "o\\u00e9", "t3"))
    monkeypatch.setenv("HOOK", "Geheim")
    with pytest.raises(rt.AnnouncementError) as caught:
        announce(three_hours(), "http://{env:HOOK}.invalid/x", ())
    assert "geheim" not in str(caught.value).lower()


REFUSED = {
    "a variable that is not set": ({"headers": {"X": "{env:NO_SUCH}"}}, "variable NO_SUCH, which is not set"),
    "a variable with two lines": ({"headers": {"X": "{env:LINES}"}}, "variable LINES, which holds characters"),
    "a placeholder that stands for nothing": ({"body": '{"a": "{strat}"}'}, "Did you mean 'start'"),
    "a body that is not JSON": ({"body": "{start}"}, "body is not JSON once it is filled"),
    "a body of a GET": ({"body": "{}", "method": "GET"}, "A GET request has no body"),
    "a variable with a blank in the URL": ({"to": "http://h/{env:BLANK}"}, "variable BLANK, .* a blank"),
    "a variable that is not ASCII": ({"headers": {"X": "{env:EURO}"}}, "that are not ASCII"),
    "a header's name": ({"headers": {"X Y": "1"}}, "'X Y' is not the name of a header"),
    "a header's value": ({"headers": {"X": "a\nb"}}, "must have one line of ASCII text"),
    "a password in the URL": ({"to": "http://joe:pw123@h/x"}, "The URL for h has a user or a password in it"),
    "no host": ({"to": "http:///x"}, "needs a URL such as"),
    "a mistyped kind": ({"to": "htpp:pw123"}, r"to='htpp':\.\.\. is no target\. Did you mean 'http'"),
    "a kind alone": ({"to": "http"}, "to needs a kind, a colon and a place"),
    "no kind": ({"to": "example.com/pw123"}, "to needs a kind, a colon and a place"),
    "a status that is taken anyway": ({"taken": [200]}, "must be statuses from 300 to 599"),
    "a status that is none": ({"taken": "409"}, "taken"),
    "no place": ({"to": "airflow:"}, r"to='airflow':\.\.\. is no target\. Give"),
    "no scheme": ({"to": "http:example.com/x"}, "needs a URL such as"),
    "a port": ({"to": "http://h:99999999/x"}, "needs a URL such as"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_cannot_be_sent_is_refused_at_the_start(
    server: Server, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("LINES", "a\nb")
    monkeypatch.setenv("EURO", "€5")
    monkeypatch.setenv("BLANK", "T0/ pw123")
    options, message = REFUSED[wrong]
    with pytest.raises(rt.InvalidOptionError, match=message) as caught:
        announce(three_hours(), **{"to": server.url, **options})
    assert "pw123" not in str(caught.value)
    assert server.asked == []


def test_without_urllib3_the_error_names_the_extra(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(rt.ExtraNotInstalledError, match=r"pip install 'spark-rowtime\[announce\]'") as caught:
        announce(three_hours(), server.url)
    assert caught.value.values == {"extra": "announce"}


def test_retry_after_is_seconds_or_a_date_that_counts_from_the_servers_own_date() -> None:
    date = "Mon, 05 Jan 2026 14:00:00 GMT"
    later = "Mon, 05 Jan 2026 14:02:00 GMT"
    assert wait_seconds({"Retry-After": "7"}) == 7
    assert wait_seconds({"Retry-After": later, "Date": date}) == 120
    assert wait_seconds({"Retry-After": date, "Date": later}) == 0
    assert [wait_seconds(h) for h in ({}, {"Retry-After": later}, {"Retry-After": "soon", "Date": date})] == [0, 0, 0]
    assert wait_seconds({"Retry-After": "9999999"}) == 3600


@pytest.mark.parametrize(
    "text",
    [
        "²",
        "٣",
        "-1",
        "1.5",
        "Mon, 05 Jan 2026 14:02:00",
        "Mon, 05 Jan 2026 14:02:00 -0000",
        "Mon, 05 Jan 99999999999999 14:02:00 GMT",
        "Mon, 05 Jan 2026 14:02:00 +99999999999",
    ],
)
def test_a_retry_after_that_is_neither_a_number_nor_a_date_is_ignored(text: str) -> None:
    date = "Mon, 05 Jan 2026 14:00:00 GMT"
    assert wait_seconds({"Retry-After": text, "Date": date}) == 0
    assert wait_seconds({"Retry-After": date, "Date": text}) == 0

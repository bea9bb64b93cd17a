"""What is stored in streams, and what clients send, must not turn the server against others, or silence it."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

import spark_rowtime as rt
from tests.diagnosis.test_not_followed import SECRET, stream_at, written_by_query
from tests.serve.conftest import Server
from tests.thief import thief

Serve = Callable[..., Server]
AT = "2026-01-05T10:00:00Z"


def get(server: Server, path: str) -> bytes:
    with urllib.request.urlopen(server.url + path, timeout=20) as answer:
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
            with urllib.request.urlopen(f"{server.url}api/live", timeout=20) as live:
                lines = (line for line in live if b"notFollowed" in line or b"not followed" in line)
                assert stored.encode() not in next(lines)
        written_by_query(hourly, orders)
        assert json.loads(get(server, f"api/why?at={AT}&stream={hourly}"))["cause"] == "noProducers"
        assert (evil.calls, evil.heard) == (0, b"")
    assert rt.why(hourly, AT).cause is rt.Cause.NO_PRODUCERS

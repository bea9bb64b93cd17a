"""``rowtime why``: exit status for alerts, JSON, and a text that fits 80 columns."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from tests.commands import rowtime


@pytest.fixture
def held(tmp_path: Path) -> Any:
    """Oslo holds a stream at nine; Berlin is at ten."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    sinks = [rt.openSink(path, producer=name, linger="1 hour", lease="1 hour") for name in ("Oslo", "Berlin")]
    for sink, hour in zip(sinks, ("09", "10"), strict=True):
        sink.sendRowtimeBound(f"2006-09-11T{hour}:00:00Z")
        sink.flush()
    yield path
    for sink in sinks:
        sink.close()


def test_the_exit_status_says_whether_it_is_complete(held: str) -> None:
    assert rowtime("why", held, "--at", "2006-09-11T09:00:00Z").exit_code == 0
    assert rowtime("why", held, "--at", "2006-09-11T09:00:01Z").exit_code == 1
    assert rowtime("why", held).exit_code == 1
    gone = rowtime("why", f"{held}2", "--at", "2006-09-11T09:00:00Z")
    assert (gone.exit_code, gone.stdout) == (2, "")
    assert "There is nothing at" in gone.stderr
    assert rowtime("why", held, "--at", "nine").exit_code == 2


def test_json_is_that_of_the_call(held: str) -> None:
    shown = json.loads(rowtime("why", held, "--json", "--silent-after", "1 hour").stdout)
    here = rt.why(held, silentAfter="1 hour").toJson()
    assert shown["cause"] == "producerBehind"
    moved = [(a.pop("lastMoved"), b.pop("lastMoved")) for a, b in zip(shown["chain"], here["chain"], strict=True)]
    assert all(abs(datetime.fromisoformat(a) - datetime.fromisoformat(b)) < timedelta(minutes=1) for a, b in moved)
    assert shown == here


def test_the_text_names_holder_cause_and_remedy_in_80_columns(
    held: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = rowtime("why", "orders.rowtime", "--silent-after", "0 s").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[:4] == [
        "stream    orders.rowtime",
        "at        2006-09-11T10:00:00Z",
        "complete  no; the bound is 2006-09-11T09:00:00Z",
        "held by   Oslo",
    ]
    assert lines[4].startswith("cause     silent: Producer 'Oslo' stands at 2006-09-11T09:00:00Z.")
    assert any("rowtime detach orders.rowtime Oslo" in line for line in [" ".join(x.strip() for x in lines)])
    assert lines[-2].split()[:5] == ["*", "Oslo", "producer", "2006-09-11T09:00:00Z", "60"]
    assert lines[-1].split()[:3] == ["orders.rowtime", "stream", "2006-09-11T09:00:00Z"]

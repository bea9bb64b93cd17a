"""What commands show: who holds the clock, JSON, 80 columns, colours on a terminal only; and errors of usage."""

import json
import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.cli.output import harmless
from spark_rowtime.cli.streams import lines_of
from spark_rowtime.store import open_store
from spark_rowtime.store.position import Position
from tests.commands import rowtime

SCHEMA = "rowtime TIMESTAMP NOT NULL, n BIGINT"


def shown(*arguments: object) -> Any:
    result = rowtime(*arguments, "--json")
    assert result.exit_code == 0, result.output
    [line] = result.stdout.splitlines()
    return json.loads(line)


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA, maxAhead="1000 days", retainAge="7 days")
    return path


def minute(n: int) -> str:
    return f"2006-09-11T10:{n:02}:00Z"


@pytest.fixture
def held(orders: str) -> list[Any]:
    """Berlin and Oslo hold the clock at 10:01; Lisbon is ahead of them; Rome has left."""
    sinks = [rt.openSink(orders, producer=name, lease=lease) for name, lease in LEASES.items()]
    for sink, minutes in zip(sinks, ((0, 1), (1,), (2, 3, 4), (1,)), strict=True):
        sink.sendRows([(minute(n), n) for n in minutes])
        sink.flush(checkpoint=f"minute {minutes[-1]}")
    sinks[-1].close()
    return sinks


LEASES = {"Berlin": "1 hour", "Oslo": None, "Lisbon": "1 hour", "Rome": "1 hour"}


def test_describe_names_all_who_hold_the_clock_and_what_waits(orders: str, held: list[Any]) -> None:
    info = rt.describeStream(orders)
    assert (info.holder, info.holders, info.rowsHeldBack) == ("Berlin", ("Berlin", "Oslo"), 3)
    lines = rowtime("describe", orders).output.splitlines()
    assert "clock     held by Berlin, Oslo" in lines
    assert "waiting   3 row(s) are accepted, and wait for the bound" in lines
    table = lines[lines.index("* holds the clock") + 1 :]
    assert [line.split()[:2] for line in table if "checkpoint" not in line] == [
        ["producer", "status"],
        ["*", "Berlin"],
        ["Lisbon", "attached"],
        ["*", "Oslo"],
        ["Rome", "left"],
    ]
    assert table[2].split() == ["checkpoint", "'minute", "1'"]
    for sink in held[:2]:
        sink.sendRowtimeBound(minute(3))
        sink.flush()
    info = rt.describeStream(orders)
    assert (info.holders, info.rowsHeldBack) == (("Berlin", "Oslo"), 1)


def test_when_a_producer_was_seen_and_what_is_left_of_its_lease(orders: str, held: list[Any]) -> None:
    now = datetime.now(UTC)
    berlin, lisbon, oslo, rome = rt.describeStream(orders).producers
    assert all(timedelta(0) <= now - p.seen < timedelta(minutes=1) for p in (berlin, lisbon, oslo, rome))
    assert timedelta(minutes=59) < berlin.leaseLeft <= berlin.lease == timedelta(hours=1)
    assert (oslo.lease, oslo.leaseLeft, rome.leaseLeft) == (None, None, None)


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_time_passes_until_the_lease_has_ended(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"memory://{tmp_path}" if kind == "memory" else str(tmp_path / "s.rowtime")
    rt.createStream(path, SCHEMA)
    store = open_store(path)
    started = store.now()
    store.now = lambda: started + passed
    passed = 0
    epoch = store.attach("Berlin", "me", "{}", 30_000_000).epoch
    passed = 20_000_000
    store.renew("Berlin", epoch)
    passed = 25_000_000
    assert store.snapshot().seen == {"Berlin": (5_000_000, 25_000_000, 30_000_000)}
    store.detach("Berlin")
    assert store.snapshot().seen["Berlin"].lease == 30_000_000
    store.close()


def test_a_producer_that_lives_and_is_silent_is_named(orders: str, held: list[Any]) -> None:
    later = lines_of(rt.describeStream(orders), 80, datetime.now(UTC) + timedelta(minutes=12, seconds=30))
    assert later.count("    has sent nothing for 12 min") == 2


def test_text_fits_80_columns(orders: str, held: list[Any]) -> None:
    long = rt.openSink(orders, producer="a producer with a name of more than forty characters", lease=None)
    long.flush(checkpoint="x" * 5000)
    with rt.openReader(orders, name="r" * 60) as reader:
        reader.read()
    info = rt.describeStream(orders)
    lines = lines_of(info, 80, datetime.now(UTC))
    assert [line for line in lines if len(line) > 80 and orders not in line] == []
    assert f"* {long.producer}" in lines, "a name is not cut"
    wide = lines_of(info, 200, datetime.now(UTC))
    assert len(wide) < len(lines)


def test_describe_as_json(orders: str, held: list[Any]) -> None:
    said = shown("describe", orders)
    assert {key: said[key] for key in ("bound", "holders", "waitsFor", "rows", "rowsHeldBack", "settings")} == {
        "bound": {"time": minute(1), "strict": False, "end": False},
        "holders": ["Berlin", "Oslo"],
        "waitsFor": "Berlin",
        "rows": 7,
        "rowsHeldBack": 3,
        "settings": {"maxAhead": 1000 * 86400, "retainAge": 7 * 86400},
    }
    assert said["columns"][1] == {"name": "n", "type": "int64", "nullable": True}
    oslo = said["producers"][2]
    assert datetime.fromisoformat(oslo.pop("seen")) <= datetime.now(UTC)
    assert datetime.fromisoformat(oslo.pop("sent")) <= datetime.now(UTC)
    assert oslo == {
        "name": "Oslo",
        "status": "attached",
        "bound": {"time": minute(1), "strict": False, "end": False},
        "accepted": 1,
        "rejected": 0,
        "epoch": 1,
        "checkpoint": "minute 1",
        "lease": None,
        "leaseLeft": None,
        "cut": None,
        "keys": 0,
        "weakestKeys": [],
        "query": None,
        "lag": None,
    }


def test_all_that_shows_something_shows_json(orders: str, held: list[Any], tmp_path: Path) -> None:
    assert shown("check", orders) == {
        "stream": orders,
        "whole": True,
        "damage": [],
        "remarks": [],
        "rows": 7,
        "readableRows": 7,
        "trains": 4,
        "readableTrains": 4,
    }
    collected = shown("gc", orders, "--age", "7 days")
    assert collected.items() >= {"stream": orders, "rows": 0, "files": 0, "bytes": 0, "forgotten": []}.items()
    assert shown("detach", orders, "Oslo")["bound"] == {"time": minute(1), "strict": False, "end": False}
    (tmp_path / "n.csv").write_text("at,n\n2006-09-11T11:00:00Z,1\n")
    sent = shown("send", orders, "--csv", tmp_path / "n.csv", "--rowtime", "at", "--columns", "n")
    assert (sent["sent"], sent["alreadyThere"], sent["producers"], sent["rejected"]) == (1, 0, ["n.csv"], 0)


def test_check_of_a_damaged_stream_is_json_too(orders: str, held: list[Any]) -> None:
    [segment, *_] = Path(orders, "segments").iterdir()
    segment.write_bytes(segment.read_bytes()[:-1])
    result = rowtime("check", orders, "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["whole"], bool(said["damage"])) == (1, False, True)


def test_a_stream_with_a_damaged_segment_can_be_described(orders: str) -> None:
    with rt.openSink(orders, producer="Berlin", rowsImplyBounds=False, lease=None) as sink:
        sink.sendRows([(minute(n), n) for n in (1, 2, 5, 6, 7)])
        sink.sendRowtimeBound(minute(4))
        sink.flush()
        assert rt.describeStream(orders).rowsHeldBack == 3
        for segment in Path(orders, "segments").iterdir():
            segment.write_bytes(bytes(len(segment.read_bytes())))
        assert rt.describeStream(orders).rowsHeldBack == 5, "a train that cannot be read counts as a whole"


def tailed(*arguments: object) -> list[str]:
    result = rowtime("tail", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_tail_says_what_waits_for_whom(orders: str, held: list[Any]) -> None:
    assert tailed(orders)[-1] == "-- 3 row(s) wait for Berlin, Oslo"
    assert json.loads(tailed(orders, "--json")[-1]) == {
        "holders": ["Berlin", "Oslo"],
        "waitsFor": "Berlin",
        "rowsHeldBack": 3,
    }
    for sink in held[:3]:
        sink.close()
    assert tailed(orders)[-1].startswith("-- every later row")


def test_tail_shows_up_to_where_bounds_beside_topics_reach(tmp_path: Path) -> None:
    path = str(tmp_path / "bounds.rowtime")
    rt.createStream(path, SCHEMA, producers=["shop", "web"])
    with rt.openSink(path, producer="shop") as shop, rt.openSink(path, producer="web") as web:
        shop.sendRowtimeBound("2006-09-11T10:00:00Z", cut={"orders": {0: 3, 1: 1}})
        shop.flush()
        shop.sendRowtimeBound("2006-09-11T11:00:00Z", cut={"orders": {1: 2}, "returns": {0: 5}})
        shop.flush()
        assert tailed(path) == ["-- shop: bounds up to orders 0: 3, 1: 2; returns 0: 5", "-- the bound waits for web"]
        web.sendRowtimeBound("2006-09-11T12:00:00Z", cut={"orders": dict.fromkeys(range(20), 7)})
        web.flush()
        bound, *cuts, _ = tailed(path)
        assert "2006-09-11T11:00:00Z" in bound
        assert cuts[1].endswith(
            "orders 0: 7, 1: 7, 2: 7, 3: 7, 4: 7, 5: 7, 6: 7, 7: 7, 8: 7, 9: 7, 10: 7, 11: 7 and 8 more"
        )
        assert json.loads(tailed(path, "--json")[1]) == {
            "producer": "shop",
            "cut": {"orders": {"0": 3, "1": 2}, "returns": {"0": 5}},
        }


@pytest.mark.parametrize("order", ["rowtime", "arrival"])
@pytest.mark.parametrize("count", [0, 1, 3, 5, 250, 1000])
def test_tail_begins_with_the_last_rows(orders: str, order: str, count: int) -> None:
    with rt.openSink(orders, producer="Berlin", lateness="1 hour", maxTrainRows=7) as sink:
        times = [rt.RowtimeBound(f"2006-09-{1 + n // 24:02}T{n % 24:02}:00:00Z").time for n in range(300)]
        sink.sendRows([(times[n ^ 1], n) for n in range(300)])
    rows = [line for line in tailed(orders, "--order", order) if not line.startswith("--")]
    last = [line for line in tailed(orders, "--order", order, "-n", count) if not line.startswith("--")]
    assert last == rows[len(rows) - min(count, len(rows)) :]


def test_tail_of_few_rows_does_not_read_the_stream(orders: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from spark_rowtime.store.local.store import LocalStore

    with rt.openSink(orders, producer="Berlin", maxTrainRows=1, linger="1 hour") as sink:
        sink.sendRows([(f"2006-09-{1 + n // 24:02}T{n % 24:02}:00:00Z", n) for n in range(300)])
    read, real = [], LocalStore.read
    monkeypatch.setattr(LocalStore, "read", lambda store, piece: read.append(piece) or real(store, piece))
    for order in ("rowtime", "arrival"):
        read.clear()
        assert sum(not line.startswith("--") for line in tailed(orders, "--order", order, "-n", 2)) == 2
        assert len(read) < 50


def test_tail_begins_after_what_was_removed(orders: str) -> None:
    with rt.openSink(orders, producer="Berlin", maxTrainRows=1) as sink:
        sink.sendRows([(minute(n), n) for n in range(50)])
    rowtime("gc", orders, "--bytes", 2000)
    left = [line for line in tailed(orders) if not line.startswith("--")]
    assert 0 < len(left) < 50
    for order in ("rowtime", "arrival"):
        assert [line for line in tailed(orders, "-n", 50, "--order", order) if line[0] != "-"] == left


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TERM": "xterm", **variables}
    with subprocess.Popen(
        [sys.executable, "-m", "spark_rowtime.cli", *arguments], stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # as Linux reports the end
                break
            text += part
        assert process.wait(240) == 0
    os.close(ours)
    return text.decode()


HOSTILE = "\x1b[8m\x1b]0;x\x07\x1b[2J\ny \x9b2J\u202e\u200b\ufeff\U000e0041"


def test_names_and_values_move_no_terminal(tmp_path: Path) -> None:
    """Who writes with calls of their own may have such names. Colours are the command's own."""
    orders = str(tmp_path / "s.rowtime")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, t STRING")
    with open_store(orders) as store:
        store.attach(HOSTILE, "h", "{}")
        store.keep(HOSTILE, Position(0, None, None))
    with rt.openSink(orders, producer="a", onLate="reject") as sink:
        sink.sendRows([(minute(2), HOSTILE), (minute(1), HOSTILE)])
    commands = ["describe", "tail", "rejected", "why --at 2026-01-05T20:00Z", "gc --age 0s", "list"]
    for command, *options in map(str.split, commands):
        for as_json in ([], ["--json"]):
            asked = [command, orders if command != "list" else str(Path(orders).parent), *options, *as_json]
            found = CliRunner().invoke(main, asked, color=True)
            said = re.sub(r"\x1b\[([012]|33)m", "", found.output)
            assert not set(said) & {*"\x1b\x07\x9b\u202e\u200b\ufeff\U000e0041"}, command
            assert "\ny " not in said, command
            for line in said.splitlines() if as_json else ():
                json.loads(line)


def test_what_is_harmless() -> None:
    """Colours of commands, and what can be seen, stay. Escapes are those of JSON."""
    assert harmless("\x1b[1mOslo\x1b[0m\tKöln 漢字 🚂\xa0é") == "\x1b[1mOslo\x1b[0m\tKöln 漢字 🚂\xa0é"
    hidden = "a\n\x7f\x9b\xad\u200b\u2028\u2066\ufeff\U000e0041"
    assert harmless(hidden) == r"a\u000a\u007f\u009b\u00ad\u200b\u2028\u2066\ufeff\udb40\udc41"
    assert json.loads(f'"{harmless(hidden)}"') == hidden


def test_colours_are_for_terminals(orders: str, held: list[Any]) -> None:
    assert "\x1b[" in on_a_terminal("describe", orders, NO_COLOR="")
    assert "\x1b[" not in on_a_terminal("describe", orders, NO_COLOR="1")
    assert "\x1b[" not in rowtime("describe", orders).output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("descrbe", "x"),
            "No such command 'descrbe'. Did you mean 'describe'? The commands are adopt, alter, announce, check,",
        ),
        (("tail", "x", "--folow"), "--follow"),
        (("xyz",), "No such command 'xyz'. The commands are"),
        (("tail", "x", "--order", "time"), "'rowtime', 'arrival'"),
        (("describe",), "Missing argument 'STREAM'"),
    ],
)
def test_wrong_usage_names_the_nearest_and_ends_with_2(arguments: tuple[str, ...], said: str) -> None:
    result = rowtime(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


@pytest.mark.parametrize("command", ["describe", pytest.param("tail", marks=pytest.mark.long)])
def test_a_full_disk_behind_the_output_is_an_error(tmp_path: Path, command: str) -> None:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
    with rt.openSink(path) as sink:
        sink.sendRows([("2026-01-05T10:00:00Z", n) for n in range(5000)])
        sink.sendRowtimeBound("2026-01-05T11:00:00Z")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "spark_rowtime.cli", command, path],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert "Traceback" not in done.stderr
    assert done.returncode != 0


def test_in_a_folder_that_is_gone_the_error_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for call in (
        lambda: rt.describeStream("x"),
        lambda: rt.createStream("x", "rowtime TIMESTAMP"),
        lambda: rt.listStreams("."),
        lambda: rt.deleteStream("x"),
    ):
        with pytest.raises(rt.StreamNotFoundError, match="somebody has removed"):
            call()

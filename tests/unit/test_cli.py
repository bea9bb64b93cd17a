"""The command line: what it prints, what it refuses, with which exit code."""

import json
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from tests.commands import rowtime
from tests.landed import landed

SCHEMA = "rowtime TIMESTAMP NOT NULL, ticker STRING, price DOUBLE"


def done(*arguments: object) -> str:
    result = rowtime(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    result = rowtime(*arguments)
    assert result.exit_code == 1
    assert (result.stdout, result.stderr[:7]) == ("", "Error: ")
    return result.stderr


@pytest.fixture
def orders(tmp_path: Path) -> str:
    return str(tmp_path / "orders.rowtime")


def fill(path: str) -> None:
    with rt.openSink(path, producer="shop") as sink:
        sink.sendRow(("2006-09-11T12:01:00Z", "MSFT", float("nan")))
        sink.sendRow(("2006-09-11T12:01:00Z", None, 2.5))
        sink.sendRowtimeBound("2006-09-11T12:05:00Z")


def test_create_in_memory_is_refused() -> None:
    """The stream would be gone with the command."""
    result = CliRunner().invoke(main, ["create", "memory://gone", "--schema", "rowtime TIMESTAMP"])
    assert (result.exit_code, "would be gone" in result.output) == (2, True)


def test_create_and_describe(orders: str) -> None:
    done("create", orders, "--schema", SCHEMA, "--max-lag", "1 hour", "--no-bounds-before-rows")
    said = done("describe", orders)
    assert f"held by nobody: no producer has been attached to {orders} yet" in " ".join(said.split())
    assert [line for line in said.splitlines() if line[:5] in ("bound", "rows ", "setti", "", "no pr")] == [
        "bound     none",
        "rows      0 accepted, 0 rejected; 0 events in the log",
        "settings  boundsBeforeRows=False, maxLag=1:00:00",
        "",
        "no producer yet",
    ]
    fill(orders)
    said = " ".join(done("describe", orders).split())
    nobody = f"nobody: of the producers of {orders} 'shop' has left; the bound stays as it is until one sends"
    assert f" clock held by {nobody} " in said
    assert " columns rowtime timestamp[us, tz=UTC] not null, ticker string, price double " in said
    assert " bound 2006-09-11T12:05:00Z: no later row is before that " in said
    assert re.search(r" shop left 2006-09-11T12:05:00Z 2 0 \d+ s", said)


def test_errors_are_one_message(orders: str) -> None:
    assert "There is nothing at" in refused("describe", orders)
    assert "needs a column 'rowtime" in refused("create", orders, "--schema", "x INT")
    done("create", orders, "--schema", SCHEMA)
    assert "There is a stream at" in refused("create", orders, "--schema", SCHEMA)
    done("create", orders, "--schema", SCHEMA, "--exist-ok")
    assert "'tomorrow' is not a time" in refused("tail", orders, "--start", "tomorrow")
    assert "no class" in refused("run", "sample_feed", orders)
    assert "is not a consumer: the class has no sendRows" in refused("drain", orders, "sample_feed:Minutes")
    assert "The constructor of 'sample_feed:Demanding' needs file," in refused("drain", orders, "sample_feed:Demanding")


def test_tail(orders: str) -> None:
    done("create", orders, "--schema", SCHEMA)
    fill(orders)
    assert done("tail", orders).splitlines() == [
        '2006-09-11T12:01:00Z  ticker="MSFT"  price="nan"',
        "2006-09-11T12:01:00Z  ticker=null  price=2.5",
        "-- every later row is at or after 2006-09-11T12:05:00Z",
    ]
    lines = [json.loads(line) for line in done("tail", orders, "--json", "--order", "arrival").splitlines()]
    assert lines[1] == {"row": {"rowtime": "2006-09-11T12:01:00Z", "ticker": None, "price": 2.5}}
    assert lines[-1] == {"bound": "2006-09-11T12:05:00Z", "strict": False}
    assert len(done("tail", orders, "--start", "2006-09-11T12:02:00Z").splitlines()) == 1


def test_send(orders: str, tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text("at,ticker,price\n2006-09-11T13:10:00Z,ORCL,1\n2006-09-11T12:10:00Z,IBM,2\n")
    said = refused("send", orders, "--csv", file, "--rowtime", "at")
    assert "There is nothing at" in said
    assert "add --create, which creates the stream with the schema of the file" in said
    create = ("send", orders, "--csv", file, "--create", "--rowtime", "at")
    assert "no such column" in (said := refused(*create, "--producer", "shop"))
    assert "write --name shop" in said
    send = (*create, "--producer", "ticker", "--bounds", "1h")
    said = "2 row(s) sent by 2 producer(s). Bound: every later row is at or after 2006-09-12T00:00:00Z"
    assert said in done(*send, "--final", "2006-09-12")
    assert "0 row(s) sent by 2 producer(s); 2 of 2 had been sent before." in done(*send)
    file.write_text("at,ticker,price\n2006-09-11T14:10:00Z,ORCL,1\n")
    assert "1 late row(s) of producer 'ORCL'" in refused(*send)
    assert "1 row(s) sent by 1 producer(s); rejected: 1." in done(*send, "--on-late", "reject")
    assert [(p.accepted, p.rejected) for p in rt.describeStream(orders).producers] == [(1, 0), (1, 2)]
    file.write_text("at,ticker\n2006-09-13T00:00:00Z,ORCL\n")
    assert "does not fit the stream: missing ['price']. " in refused(*send)


def test_send_without_producers_is_one_named_as_the_file(orders: str, tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text("at,price\n2006-09-11T13:10:00Z,1\n")
    done("send", orders, "--csv", file, "--rowtime", "at", "--columns", "price", "--create")
    done("send", orders, "--csv", file, "--rowtime", "at", "--columns", "price", "--name", "me", "--on-late", "reject")
    assert [p.name for p in rt.describeStream(orders).producers] == ["me", "trades.csv"]
    assert rt.describeStream(orders).schema.names == ["rowtime", "price"]


def test_send_in_order_per_a_column(orders: str, tmp_path: Path) -> None:
    """A live feed under the same name goes on from the bound of each value."""
    file = tmp_path / "trades.csv"
    file.write_text("at,ticker\n2006-09-11T13:10:00Z,ORCL\n2006-09-11T12:10:00Z,IBM\n")
    send = ("send", orders, "--csv", file, "--rowtime", "at", "--name", "feed", "--create")
    send = (*send, "--final", "2006-09-11T13:10Z")
    assert "is no column" in refused(*send, "--in-order-per", "shop")
    done(*send, "--in-order-per", "ticker")
    assert done("describe", orders).splitlines()[-3:] == [
        "    2 values known; the weakest:",
        "      'IBM' at 2006-09-11T13:10:00Z",
        "      'ORCL' at 2006-09-11T13:10:00Z",
    ]
    with rt.openSink(orders, producer="feed", inOrderPer="ticker") as live:
        live.closeKey("IBM")
        live.sendRow({"rowtime": "2006-09-11T13:20:00Z", "at": "2006-09-11T13:20:00Z", "ticker": "ORCL"})
        assert live.getRowtimeBound() == rt.RowtimeBound("2006-09-11T13:20:00Z")


def test_run_hosts_an_adapter(orders: str) -> None:
    said = refused("run", "sample_feed:Minutes", orders)
    assert "There is nothing at" in said
    assert "add --create, which creates the stream with the schema of the adapter" in said
    assert not Path(orders).exists()
    done("run", "sample_feed:Minutes", orders, "--producer", "mine", "--restarts", "3", "--create")
    (mine,) = rt.describeStream(orders).producers
    assert (mine.name, mine.accepted, mine.checkpoint) == ("mine", 5, "5")


def test_drain_feeds_a_consumer_and_resumes(orders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done("run", "sample_feed:Minutes", orders, "--create")
    done("drain", orders, "sample_feed:Notebook")
    done("drain", orders, "sample_feed:Notebook")
    notes = [json.loads(line) for line in Path("notebook.jsonl").read_text().splitlines()]
    assert [(note["n"], note["bound"]) for note in notes] == [([0, 1, 2, 3, 4], "from 11:00:00")]


def run_python(*arguments: str, **more: Any) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment, **more)


def test_as_a_process_it_follows_and_ends_without_a_traceback(orders: str) -> None:
    rt.createStream(orders, SCHEMA)
    fill(orders)
    with run_python("-m", "spark_rowtime.cli", "tail", orders, "--follow") as tail:
        lines = [tail.stdout.readline() for _ in range(3)]
        lines.append(tail.stdout.readline())  # once it is quiet
        with rt.openSink(orders, producer="shop") as sink:
            sink.sendRow(("2006-09-11T12:05:30Z", "IBM", 1.0))
            sink.sendRowtimeBound("2006-09-11T12:06:00Z")
            row = next(line for line in tail.stdout if "IBM" in line)
            later = next(line for line in tail.stdout if "12:06" in line)
            tail.send_signal(signal.SIGINT)
        rest, error = tail.communicate()
    assert lines[-2:] == [
        "-- every later row is at or after 2006-09-11T12:05:00Z\n",
        f"-- the bound waits for {rt.describeStream(orders).waitsFor}\n",
    ]
    assert row == '2006-09-11T12:05:30Z  ticker="IBM"  price=1.0\n'
    assert later == "-- every later row is at or after 2006-09-11T12:06:00Z\n"
    assert all(line == "-- the bound waits for shop\n" for line in rest.splitlines(keepends=True))  # it was quiet
    assert (error, tail.returncode) == ("\nAborted!\n", 130)


INTERRUPTED = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "spark_rowtime.stream_info":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
runpy.run_module("spark_rowtime.cli", run_name="__main__")
"""
"""It is interrupted while it imports."""


def test_as_a_process_it_ends_without_a_traceback_while_it_is_loaded() -> None:
    with run_python("-c", INTERRUPTED) as process:
        assert (*process.communicate(), process.returncode) == ("", "", 130)


def test_pyspark_and_pandas_are_not_imported() -> None:
    """Either takes longer to import than all the rest. PyArrow loads pandas once a list becomes an array."""
    code = (
        "import sys, spark_rowtime.cli, spark_rowtime.adapter.adapter\n"
        "sys.exit(','.join(m for m in sys.modules if m.startswith(('pyspark', 'py4j', 'pandas'))))"
    )
    with run_python("-c", code) as process:
        assert process.communicate() == ("", "\n")


KILLED = """
import os, signal, sys
from spark_rowtime.cli import main
from spark_rowtime.store.ledger_store import LedgerStore

commit, when = LedgerStore.commit, sys.argv.pop(1)

def killed(store, what):
    rows = store.head().rows
    if rows and when == "before a commit":
        os.kill(os.getpid(), signal.SIGKILL)
    receipt = commit(store, what)
    if store.head().rows > rows and when == "after a commit":
        os.kill(os.getpid(), signal.SIGKILL)
    return receipt

LedgerStore.commit = killed
main(prog_name="rowtime")
"""
"""Is killed as soon as the first commit with rows has landed, or before the next one."""


@pytest.mark.long
@pytest.mark.parametrize("when", ["before a commit", "after a commit"])
def test_a_send_that_was_killed_goes_on_where_it_was(orders: str, tmp_path: Path, when: str) -> None:
    file = tmp_path / "trades.csv"
    times = (f"2006-09-{1 + n // 1440:02}T{n // 60 % 24:02}:{n % 60:02}Z" for n in range(5000))
    file.write_text("at,shop,n\n" + "".join(f"{time},{n % 3},{n}\n" for n, time in enumerate(times)))
    arguments = ("send", orders, "--csv", str(file), "--rowtime", "at", "--producer", "shop", "--bounds", "6 minutes")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, at TIMESTAMP, shop BIGINT, n BIGINT")
    with run_python("-c", KILLED, when, *arguments) as first:
        assert (first.communicate(), first.returncode) == (("", ""), -signal.SIGKILL)
    there = rt.describeStream(orders).rows
    assert 0 < there < 5000
    assert f"{5000 - there} row(s) sent by 3 producer(s); {there} of 5000 had been sent before" in done(*arguments)
    assert landed(orders, order="rowtime") == list(range(5000))


def test_detach(orders: str) -> None:
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL")
    rt.openSink(orders, producer="gone", lease=None).sendRowtimeBound("2006-09-11T10:00:00Z")
    rt.openSink(orders, producer="here", lease=None).sendRowtimeBound("2006-09-11T11:00:00Z")
    assert "the bound is now 2006-09-11T11:00:00Z" in done("detach", orders, "gone")
    assert [(p.name, p.status.value) for p in rt.describeStream(orders).producers] == [
        ("gone", "detached"),
        ("here", "attached"),
    ]
    assert "nobody" in refused("detach", orders, "nobody")


def test_describe_shows_the_settings_that_were_given(orders: str) -> None:
    done("create", orders, "--schema", SCHEMA)
    assert "settings" not in done("describe", orders)
    assert rt.describeStream(orders).settings == {}
    other = f"{orders}.2"
    done("create", other, "--schema", SCHEMA, "--max-lag", "1 hour", "--retain-bytes", 5, "--no-bounds-before-rows")
    assert "settings  boundsBeforeRows=False, maxLag=1:00:00, retainBytes=5" in done("describe", other)
    told = {"boundsBeforeRows": False, "maxLag": timedelta(hours=1), "retainBytes": 5}
    assert rt.describeStream(other).settings == told


def test_rejected_rows_and_whose_bound_they_fell_below(tmp_path):
    path = str(tmp_path / "s")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT", retainRejected=0)
    with rt.openSink(path, producer="Berlin") as berlin:
        berlin.sendRowtimeBound("2006-09-11T10:00:00Z")
    with rt.openSink(path, producer="Oslo", onLate="reject", linger="1 hour") as oslo:
        oslo.sendRow(("2006-09-11T08:00:00Z", 0))
        oslo.flush()
        oslo.sendRows([("2006-09-11T09:00:00Z", 1), ("2006-09-11T09:30:00Z", 2)])
        oslo.flush()
    lines = CliRunner().invoke(main, ["rejected", path, "-n", "1"])
    assert lines.stdout.startswith("2006-09-11T09:30:00Z  x=2\n    rejected from producer 'Oslo' at 2")
    assert "late, below 2006-09-11T10:00:00Z, the stream's since producer 'Berlin' sent rows or a bound" in lines.stdout
    assert "1 older rejected row(s) are counted but no longer kept" in lines.stderr
    found = [json.loads(line) for line in CliRunner().invoke(main, ["rejected", path, "--json"]).stdout.splitlines()]
    assert [(one["row"]["x"], one["producer"], one["boundBy"]) for one in found] == [
        (1, "Oslo", "Berlin"),
        (2, "Oslo", "Berlin"),
    ]
    missing = CliRunner().invoke(main, ["rejected", str(tmp_path / "nowhere")])
    assert (missing.exit_code, "createStream" in missing.stderr) == (1, True)


def test_send_leaves_the_checkpoint_of_another_feed_alone(orders: str, tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    file.write_text("rowtime,ticker,price,who\n2006-09-11T13:00:00Z,IBM,1.5,shop\n")
    rt.createStream(orders, "rowtime TIMESTAMP NOT NULL, ticker STRING, price DOUBLE, who STRING")
    with rt.openSink(orders, producer="shop") as sink:
        sink.flush(checkpoint="10")
    said = refused("send", orders, "--csv", file, "--rowtime", "rowtime", "--producer", "who")
    assert "Producer 'shop' of" in said
    assert "has the checkpoint '10' of another feed" in said
    assert "under names of its own" in said
    assert rt.describeStream(orders).producers[0].checkpoint == "10"
    with rt.openSink(orders, producer="shop") as sink:
        sink.flush(checkpoint="[" * 100_000)
    assert "of another feed" in refused("send", orders, "--csv", file, "--rowtime", "rowtime", "--producer", "who")


LENGTHS = {
    "create s --schema x": ["--max-lag", "--idle-timeout", "--max-ahead", "--retain-age"],
    "alter s": ["--max-ahead"],
    "gc s": ["--age", "--forget-older"],
    "watch kafka://h:1/t b": ["--lateness", "--delay", "--every"],
    "drain s delta:d": ["--every", "--bounds-every"],
    "announce s --to success:d --every 1h": ["--timeout"],
    "send s": ["--bounds"],
    "wait token s": ["--timeout"],
    "why s": ["--silent-after"],
}
"""The options that are lengths of time, by command."""


@pytest.mark.parametrize(("command", "option"), [(c, option) for c, options in LENGTHS.items() for option in options])
@pytest.mark.parametrize("text", ["7", "soon", "-1 hour", ""])
def test_a_length_of_time_without_a_unit_is_wrong_usage(command: str, option: str, text: str) -> None:
    result = rowtime(*command.split(), option, text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert option in result.stderr
    assert f"{text!r} is no length of time. Write a number and a unit" in result.stderr
    assert ("'unlimited'" in result.stderr) == (option == "--max-ahead")


def test_no_option_that_is_a_length_of_time_is_left_out() -> None:
    """Those of announce are periods, which a calendar has: --every."""
    told = re.compile("how long|how far|so long|length of|interval|hours?'|days'", re.IGNORECASE)
    found = {
        (name, option.opts[0])
        for name, command in main.commands.items()
        for option in command.params
        if isinstance(option, click.Option) and told.search(option.help or "") and not option.is_flag
    }
    known = {(command.split()[0], option) for command, options in LENGTHS.items() for option in options}
    assert found - known <= {("announce", "--every"), ("announce", "--tz")}


def test_an_alteration_of_nothing_is_wrong_usage(orders: str) -> None:
    result = rowtime("alter", orders)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Nothing is to be altered. Give --add, --max-ahead" in result.stderr

"""The command line at a shell: JSON of every command that shows something, completion, narrow terminals, progress."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import check_store, copy_store
from tests.unit.test_cli_output import on_a_terminal, rowtime

SCHEMA = "rowtime TIMESTAMP NOT NULL, name STRING, note STRING"
SHOWS_NOTHING = {"adopt", "create", "rename", "delete", "run", "watch", "drain", "serve", "wait"}
"""Commands that print nothing about a stream: their result is the exit code, or a log, or a page."""


@pytest.fixture
def orders(tmp_path: Path) -> str:
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA, producers=["Berlin", "Bergen", "Oslo"])
    with rt.openSink(path, producer="Berlin") as sink:
        for n in range(300):
            sink.sendRow((f"2026-01-05T10:{n // 60:02}:{n % 60:02}Z", "x" * 30, "y" * 30))
            sink.flush()
    with rt.openReader(path, order="arrival", name="report") as reader:
        reader.read()
    return path


def completed(arguments: list[str], incomplete: str) -> list[tuple[str, str]]:
    complete = ShellComplete(main, {}, "rowtime", "_ROWTIME_COMPLETE")
    return [(item.value, item.type) for item in complete.get_completions(arguments, incomplete)]


def test_every_command_that_shows_something_has_json() -> None:
    without = {
        name for name, command in main.commands.items() if not any("--json" in param.opts for param in command.params)
    }
    assert without == SHOWS_NOTHING


def test_json_of_copy_alter_and_jar(orders: str, tmp_path: Path) -> None:
    to = str(tmp_path / "copy.rowtime")
    copied: Any = json.loads(rowtime("copy", orders, to, "--json").stdout)
    assert copied == {"stream": orders, "to": to, "rows": 300, "seq": rt.describeStream(to).seq}
    altered: Any = json.loads(rowtime("alter", to, "--add", "coupon STRING", "--json").stdout)
    assert altered["columns"][-1] == {"name": "coupon", "type": "string", "nullable": True}
    assert json.loads(rowtime("jar", "--json").stdout) == {"jar": str(rt.jarPath())}


def test_a_name_that_somebody_has_chosen_is_no_command_for_the_shell(tmp_path: Path) -> None:
    path, names = str(tmp_path / "s"), ["b; touch pwned", "b$(touch pwned)", "b`touch pwned`", "plain", "b'c"]
    rt.createStream(path, SCHEMA, producers=names)
    line = {"COMP_WORDS": f"rowtime detach {path} b", "COMP_CWORD": "3", "_ROWTIME_COMPLETE": "bash_complete"}
    asked = [sys.executable, "-c", "from spark_rowtime.cli import main; main(prog_name='rowtime')"]
    shown = subprocess.run(asked, env={**os.environ, **line}, capture_output=True, text=True, check=True).stdout
    found = [text.removeprefix("plain,") for text in shown.splitlines()]
    run = "".join(f"printf '%s\\n' {text}\n" for text in found)
    typed = subprocess.run(["bash", "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert sorted(typed.splitlines()) == sorted(names[:3] + names[4:])
    assert not (tmp_path / "pwned").exists()


def test_the_shell_completes_commands_paths_and_names(orders: str) -> None:
    assert completed([], "des") == [("describe", "plain")]
    assert completed(["describe"], "ord") == [("ord", "dir")]
    assert completed(["detach", orders], "Ber") == [("Bergen", "plain"), ("Berlin", "plain")]
    assert completed(["gc", orders, "--forget"], "") == [("report", "plain")]
    assert completed(["detach", "no such stream"], "") == []


def test_bash_asks_the_command_itself(orders: str) -> None:
    asked = {"_ROWTIME_COMPLETE": "bash_complete", "COMP_WORDS": f"rowtime close {orders} O", "COMP_CWORD": "3"}
    command = [sys.executable, "-m", "spark_rowtime.cli"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain,Oslo"]


def test_tail_fits_a_narrow_terminal_and_is_a_line_a_row_elsewhere(orders: str) -> None:
    shown = on_a_terminal("tail", orders, "-n", "2", "--order", "arrival", COLUMNS="80", NO_COLOR="1").splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[0].startswith("2026-01-05T10:04:58Z  name=")
    assert shown[1].startswith("    note=")
    lines = rowtime("tail", orders, "-n", "2", "--order", "arrival").stdout.splitlines()
    assert lines[0].endswith(f'name="{"x" * 30}"  note="{"y" * 30}"')


@pytest.mark.long
def test_progress_is_shown_on_a_terminal_only(orders: str, tmp_path: Path) -> None:
    assert "checking" in on_a_terminal("check", orders)
    assert "copying" in on_a_terminal("copy", orders, str(tmp_path / "a.rowtime"))
    assert "removing" in on_a_terminal("gc", orders, "--age", "0 s", "--force")
    for command in (["check", orders], ["copy", orders, str(tmp_path / "b.rowtime")], ["gc", orders, "--age", "0 s"]):
        assert rowtime(*command).stderr == ""


def test_a_drain_into_a_table_counts_the_rows_that_are_left(tmp_path: Path) -> None:
    path, target = str(tmp_path / "clicks.rowtime"), f"parquet:{tmp_path}/lake/date=%Y-%m-%d/hour=%H"
    rt.createStream(path, SCHEMA)
    for hours, total in ((range(10, 13), 3), (range(13, 15), 3)):  # a row of an hour that was not complete comes again
        with rt.openSink(path, producer="web") as sink:
            for hour in hours:
                sink.sendRow((f"2026-01-05T{hour}:30:00Z", "a", "b"))
                sink.flush()
        shown = on_a_terminal("drain", path, target, COLUMNS="120", NO_COLOR="1")
        bars = [line for line in shown.replace("\r", "\n").splitlines() if "drained" in line]
        assert f"{total}/{total} rows" in bars[-1]
    assert "drained" not in rowtime("drain", path, target).stderr


@pytest.mark.parametrize("work", ["check", "copy"])
def test_progress_rises_to_all_there_is(orders: str, tmp_path: Path, work: str) -> None:
    steps: list[tuple[int, int | None]] = []

    def advance(done: int, total: int | None) -> None:
        steps.append((done, total))

    if work == "check":
        check_store(orders, advance)
    else:
        copy_store(orders, str(tmp_path / "copy.rowtime"), advance)
    assert len(steps) > 1
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]

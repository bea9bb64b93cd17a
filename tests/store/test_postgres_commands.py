"""Every command does with a stream in PostgreSQL what it does with one in a directory."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from tests.postgresserver import PostgresServer, started
from tests.streams import send

CSV = """rowtime,shop,amount
2026-01-05T09:10:00Z,Berlin,1.5
2026-01-05T09:20:00Z,Oslo,2.5
2026-01-05T09:50:00Z,Berlin,3.5
2026-01-05T10:05:00Z,Oslo,4.5
2026-01-05T10:20:00Z,Berlin,5.5
2026-01-05T09:00:00Z,Oslo,6.5
"""
COMMANDS = (
    "create {path} --schema 'rowtime TIMESTAMP NOT NULL, shop STRING, amount DOUBLE' --producer Oslo --producer Rome",
    "send {path} --csv {folder}/sales.csv --rowtime rowtime --columns shop,amount --producer shop --bounds 30min",
    "describe {path}",
    "describe {path} --json",
    "why {path} --at 2026-01-05T10:00Z",
    "close {path} Rome",
    "why {path} --at 2026-01-05T10:00Z --json",
    "why {path} --at 2027-01-01T00:00Z",
    "tail {path} --json",
    "tail {path} --order arrival -n 2",
    "rejected {path}",
    "drain {path} parquet:{folder}/lake/date=%Y-%m-%d/hour=%H --name lake",
    "announce {path} --every 1h --to success-file:{folder}/done/date=%Y-%m-%d/hour=%H",
    "alter {path} --add 'coupon STRING'",
    "copy {path} {other}",
    "check {other}",
    "list {root}",
    "gc {path} --age '0 s'",
    "gc {path} --age '0 s' --force",
    "check {path} --json",
    "rename {path} {path}-renamed",
    "describe {path}-renamed",
    "detach {other} Oslo",
    "delete {other} --force",
    "list {root}",
)
FAILING = ["why {path} --at 2026-01-05T10:00Z", "why {path} --at 2027-01-01T00:00Z"]
"""Those whose exit status says that the stream is not complete."""
CHANGING = (
    (r'"(seen|sent|lastMoved)": [^,}]*', r'"\1": ...'),
    (r"[0-9a-f]{8,}", "HASH"),
    (r"\d+ files of \d+ bytes", "files"),
    (r"\d+(\.\d+)? (min|ms|s)\b", "N"),
)
"""What differs between two runs: times, hashes of paths, and the files of rows."""


def run(command: str, **places: str) -> tuple[int, str]:
    """The exit code and the output of a command, with names instead of the places."""
    arguments = [part.strip("'") for part in re.findall(r"'[^']*'|\S+", command)]
    result = CliRunner().invoke(main, [argument.format(**places) for argument in arguments])
    shown = result.stdout
    for name, place in sorted(places.items(), key=lambda pair: -len(pair[1])):
        shown = shown.replace(place, f"<{name}>")
    for pattern, instead in CHANGING:
        shown = re.sub(pattern, instead, shown)
    return result.exit_code, " ".join(shown.split())


def outputs(folder: Path, root: str) -> list[tuple[str, int, str]]:
    """Each command with its exit code and its output, and the files that they have made."""
    folder.mkdir()
    (folder / "sales.csv").write_text(CSV)
    places = {"path": f"{root}/sales", "other": f"{root}/copied", "root": root, "folder": str(folder)}
    found = [(command, *run(command, **places)) for command in COMMANDS]
    made = sorted(str(file.relative_to(folder)) for file in folder.rglob("hour=*/*"))
    return [*found, ("files", len(made), re.sub(r"-[0-9a-fT]+", "", " ".join(made)))]


def test_every_command_does_the_same(tmp_path: Path, postgres: PostgresServer) -> None:
    (tmp_path / "streams").mkdir()
    ours, theirs = outputs(tmp_path / "a", postgres.url("commands")), outputs(tmp_path / "b", str(tmp_path / "streams"))
    for one, other in zip(ours, theirs, strict=True):
        assert one == other
    *commands, (_, made, _) = ours
    assert [command for command, code, _ in commands if code] == FAILING
    assert made == 2


def test_tail_goes_on_when_the_server_was_restarted() -> None:
    with started() as server:
        path = server.url("orders")
        rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n INT")
        command = [sys.executable, "-m", "spark_rowtime.cli", "tail", path, "--follow", "--order", "arrival"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            assert tail.stderr is not None
            for n in range(2):
                with rt.openSink(path, producer="shop") as sink:
                    send(sink, (f"10:0{n}", n))
                assert f"n={n}" in next(line for line in tail.stdout if "n=" in line)
                if n == 0:
                    server.stop()
                    assert "Trying again in 1 s." in tail.stderr.readline()
                    server.start()
            tail.send_signal(signal.SIGINT)

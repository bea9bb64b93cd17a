"""A directory that another user may read, and not write into: it is read, and nothing in it changes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.local import catalog, check
from spark_rowtime.store.local.copy import copy_local
from tests.landed import landed
from tests.otheruser import ROOT, run, share, shared, start

__all__ = ["shared"]
DDL = "rowtime TIMESTAMP NOT NULL, n BIGINT"
DIES = """
import os, sys
import spark_rowtime as rt
sink = rt.openSink(sys.argv[1], linger="1 hour")
sink.sendRow(("2026-01-05T15:00:00Z", 3))
sink.flush()
os.kill(os.getpid(), 9)
"""
READS = """
import sys
import spark_rowtime as rt
path, rows = sys.argv[1], []
for name in ("one", "two"):
    with rt.openReader(path, order="arrival", name=name) as reader:
        rows = [row["n"] for train in reader for row in train.rows.to_pylist()]
assert rt.describeStream(path).path == path
print(rows)
for call in (
    lambda: rt.openSink(path),
    lambda: rt.alterStream(path, add="m BIGINT"),
    lambda: rt.renameStream(path, path + "2"),
):
    try:
        call()
    except rt.StoreUnavailableError as error:
        print(error)
"""
FOLLOWS = """
import sys
import spark_rowtime as rt
with rt.openReader(sys.argv[1], order="arrival", follow=True) as reader:
    for train in reader:
        for row in train.rows.to_pylist():
            print(row["n"], flush=True)
"""


@pytest.fixture
def path(shared: Path) -> str:
    rt.createStream(str(shared / "s"), DDL)
    send(str(shared / "s"), 1)
    share(shared)
    return str(shared / "s")


def send(path: str, *numbers: int) -> None:
    with rt.openSink(path, producer="a") as sink:
        sink.sendRows([(f"2026-01-05T14:30:{n:02d}Z", n) for n in numbers])


@pytest.fixture(params=["nobody has it open", "a writer has it open", "a writer has died", "it was renamed"])
def state(request: pytest.FixtureRequest, path: str) -> Iterator[list[int]]:
    """The rows that are there."""
    if request.param == "a writer has died":
        died = subprocess.run([sys.executable, "-c", DIES, path], cwd=ROOT, check=False)
        assert died.returncode == -signal.SIGKILL
        yield [1, 3]
    elif request.param == "a writer has it open":
        with rt.openSink(path, producer="b", linger="1 hour", lease=None) as sink:
            sink.sendRow(("2026-01-05T15:00:00Z", 2))
            sink.flush()
            yield [1, 2]
    else:
        if request.param == "it was renamed":
            rt.renameStream(path, f"{path}2")
            rt.renameStream(f"{path}2", path)
        yield [1]


def files(path: str) -> list[tuple[str, int, bytes]]:
    everything = sorted([Path(path), *Path(path).rglob("*")])
    return [(str(f), f.stat().st_mtime_ns, b"" if f.is_dir() else f.read_bytes()) for f in everything]


def test_a_reader_without_the_right_to_write(path: str, state: list[int]) -> None:
    before = files(path)
    output, errors = run("-c", READS, path)
    rows, *refused = output.splitlines()
    assert rows == str(state)
    assert len(refused) == 3
    assert all("This user may not write into the stream" in line for line in refused)
    assert errors.count("ReaderNotRegisteredWarning") == 1, errors
    assert files(path) == before
    with closing(open_store(path)) as store:
        assert not store.snapshot().readers


def test_it_follows_writers_that_come_and_go(path: str) -> None:
    reader = start("-c", FOLLOWS, path)
    assert reader.stdout is not None
    seen = [int(reader.stdout.readline())]
    for n in range(2, 12):
        send(path, n)
        seen.append(int(reader.stdout.readline()))
    reader.kill()
    reader.communicate()
    assert seen == list(range(1, 12))


def test_a_writer_is_not_kept_from_anything(path: str) -> None:
    """While the other user reads, the stream is written, collected and renamed."""
    reader = start("-c", FOLLOWS, path)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "1\n"
    send(path, 2)
    with closing(open_store(path)) as store:
        assert store.gc(age=0).rows > 0
    reader.kill()
    reader.communicate()
    rt.renameStream(path, path + "2")


@pytest.mark.parametrize("call", ["check", "copy"])
def test_who_may_only_read_checks_and_copies_beside_gc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The catalog that this user has read in one piece still names rows that are gone."""
    path = str(tmp_path / "s")
    rt.createStream(path, DDL)
    for n in range(1, 4):
        send(path, n)
    monkeypatch.setattr(check, "ADVANCE_EVENTS", 1)
    collected: list[int] = []

    def advance(_: int, __: int | None) -> None:
        if not collected:
            monkeypatch.undo()
            with closing(open_store(path)) as store:
                collected.append(store.gc(age=0).rows)

    monkeypatch.setattr(catalog, "may_write", lambda _: False)
    if call == "check":
        assert not check.check_stream(Path(path), advance).damage
    else:
        copy_local(path, f"{path}2", advance)
        assert rt.describeStream(f"{path}2").rows == 3
    assert collected == [3]


LOCKS = """
import fcntl, os, sys
file = os.open(sys.argv[1] + "/catalog.db-shm", os.O_RDONLY)
fcntl.lockf(file, fcntl.LOCK_SH, 8, 120)
print("locked", flush=True)
sys.stdin.read()
"""
"""Takes the locks of SQLite's writers. POSIX gives a shared one to all who may read a file."""


@pytest.mark.long
def test_who_may_only_read_can_delay_and_nothing_is_lost(path: str, shared: Path) -> None:
    """What does not hold: docs/security.md says it."""
    with rt.openSink(path, producer="a", linger="1 hour") as sink:
        sink.sendRow(("2026-01-05T15:00:00Z", 2))
        sink.flush()
        share(shared)
        attacker = start("-c", LOCKS, path)
        assert attacker.stdout is not None
        assert attacker.stdout.readline() == "locked\n"
        sink.sendRow(("2026-01-05T15:00:01Z", 3))
        with pytest.raises(rt.StoreUnavailableError, match="locked"):
            sink.flush()
        attacker.communicate()
        sink.flush()
    assert landed(path) == [1, 2, 3]


COMMANDS: dict[str, list[str]] = {
    "tail": ["tail", "{path}"], "describe": ["describe", "{path}"],
    "why": ["why", "{path}", "--at", "2026-01-05T14:00:00Z"],
    "list": ["list", "{folder}"], "check": ["check", "{path}"], "copy": ["copy", "{path}", "{own}"],
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_of_such_a_user(path: str, name: str, shared: Path) -> None:
    own = shared / "own"
    own.mkdir()
    own.chmod(0o777)
    before = files(path)
    names = {"path": path, "folder": str(Path(path).parent), "own": str(own / "copy")}
    run("-m", "spark_rowtime.cli", *(part.format(**names) for part in COMMANDS[name]))
    assert files(path) == before


def test_a_directory_that_this_user_may_not_look_into_is_listed_with_the_reason(shared: Path) -> None:
    """Nobody can say whether it is a stream. A visitor of the page does not learn of it."""
    for name in ("closed", "open"):
        rt.createStream(str(shared / name), "rowtime TIMESTAMP NOT NULL")
    share(shared)
    (shared / "closed").chmod(0o700)
    (shared / "lost+found").mkdir(mode=0o700)
    text, _ = run("-m", "spark_rowtime.cli", "list", str(shared), "--json")
    closed, readable = map(json.loads, text.splitlines())
    assert (closed["stream"], readable["rows"]) == (str(shared / "closed"), 0)
    assert "Permission denied" in closed["error"]
    served, _ = run(
        "-c", "import sys; from spark_rowtime.store import list_stores; print(list_stores(*sys.argv[1:]))", str(shared)
    )
    assert "closed" not in served

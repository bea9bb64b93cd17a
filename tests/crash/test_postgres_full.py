"""A full disk of the PostgreSQL server: a clear error, nothing lost, and the stream goes on once there is room."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import check_store, open_store
from tests.crash import feeds
from tests.crash.checks import check_log, numbers
from tests.crash.full import refusals, rows_from
from tests.crash.small_disk import fill
from tests.crash.tally import Tally
from tests.postgresserver import PostgresServer, unprivileged
from tests.store.streams import infos

SIZE_MB = 24
"""The size of the disk. An empty database takes a third of it."""


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small file system that the server's user owns, where this machine lets us mount one."""
    place = Path(tempfile.mkdtemp(prefix="rowtime-full-"))
    place.chmod(0o755)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "none", str(place)]
    mount = shutil.which("mount")
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        place.rmdir()
        pytest.skip("this machine does not let us mount a file system (mount -t tmpfs)")
    if owner := unprivileged():
        shutil.chown(place, *owner)
    yield place
    subprocess.run(["umount", str(place)], check=True)
    place.rmdir()


@pytest.fixture
def database(postgres: PostgresServer, disk: Path) -> Iterator[str]:
    """A database whose tables are on that disk. The server's log of writes is not."""
    postgres.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
    postgres.execute("CREATE DATABASE small TABLESPACE small")
    yield "small"
    postgres.execute("DROP DATABASE small")
    postgres.execute("DROP TABLESPACE small")


def test_a_full_disk_of_the_server(
    postgres: PostgresServer, database: str, disk: Path, tally: Callable[[str], Tally]
) -> None:
    """The sink keeps what it was given, readers read on, and the next flush with room sends all."""
    path, line = postgres.url("s", database=database), tally("a disk of the PostgreSQL server, full")
    rt.createStream(path, feeds.DDL)
    with rt.openSink(path, producer="a", linger=feeds.QUIET) as sink:
        sink.sendRows(rows_from(0, 10))
        sink.flush()
        ballast = disk / "ballast"
        fill(ballast)
        errors, sent = refusals(sink, 10, 1000)
        with open_store(path) as store:
            landed = numbers(store)
            assert landed == list(range(len(landed)))
        ballast.unlink()
        sink.flush("all of it")
    line.fault(len(errors))
    assert len(errors) == 2
    assert all(error.startswith("StoreUnavailableError") and "No space left on device" in error for error in errors)
    with open_store(path) as store:
        line.account(numbers(store), range(sent), range(sent))
        assert numbers(store) == list(range(sent))
        assert infos(store)[0].checkpoint == "all of it"
        check_log(store)
    assert check_store(path).damage == []

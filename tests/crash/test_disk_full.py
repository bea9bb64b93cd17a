"""No room, no rights: a clear error, nothing lost of what was taken, and the stream goes on once there is room."""

import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store.local import open_local
from tests.crash import feeds, full
from tests.crash.checks import check_log, numbers
from tests.crash.small_disk import alone, mounting
from tests.crash.tally import Tally
from tests.crash.victims import Victim
from tests.store.streams import infos

SAID = "Nothing of this call was committed. Check the free space and the permissions"


@pytest.fixture
def path() -> Iterator[str]:
    """A stream in a folder that everybody can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    rt.createStream(str(folder / "s"), feeds.DDL)
    yield str(folder / "s")
    shutil.rmtree(folder)


def check(errors: list[str], sent: int, path: str, line: Tally) -> None:
    assert all(error.startswith("StoreUnavailableError") and SAID in error for error in errors), errors
    store = open_local(path)
    line.fault(len(errors))
    line.account(numbers(store), range(sent), range(sent))
    assert numbers(store) == list(range(sent))
    check_log(store)
    store.close()


@pytest.mark.parametrize(
    ("count", "durability"), [(1, "process"), (20_000, "process"), (1, "power"), (20_000, "power")]
)
def test_a_limit_on_files_fails_a_flush_and_the_next_sends_all(
    path: str, tally: Callable[[str], Tally], count: int, durability: str
) -> None:
    """Small trains reach it in the catalog's log, large ones in a segment."""
    ((errors, sent),), code = Victim(full.files_limited, path, count, durability).end()
    assert (code, len(errors)) == (0, 2)
    check(errors, sent, path, tally("no room for a commit"))
    assert infos(open_local(path))[0].checkpoint == "all of it"


def test_a_full_database_is_reported_by_the_next_call(path: str, tally: Callable[[str], Tally]) -> None:
    """What a call had taken when its commit failed is kept; the call that is told has taken nothing."""
    ((errors, sent),), code = Victim(full.pages_limited, path).end()
    assert (code, len(errors)) == (0, 3)
    assert all("database or disk is full" in error for error in errors)
    check(errors, sent, path, tally("no room for a commit"))


def test_directories_without_rights(path: str, tally: Callable[[str], Tally]) -> None:
    """A new segment cannot be made in them."""
    ((errors, sent),), code = Victim(full.no_rights, path).end()
    assert (code, len(errors)) == (0, 2)
    check(errors, sent, path, tally("directories that may not be written in"))


def test_a_disk_that_is_full(tmp_path: Path, tally: Callable[[str], Tally]) -> None:
    """A real one, of 1 MB, where this machine lets us mount it."""
    mount = mounting(tmp_path)
    code = f"from tests.crash.full import disk_full; disk_full({str(tmp_path / 's')!r})"
    done = alone(f'{mount} && exec "$0" -c "$1"', sys.executable, code)
    assert done.returncode == 0, done.stderr
    errors, sent, found = json.loads(done.stdout)
    line = tally("a disk of 1 MB, full")
    line.fault(len(errors))
    line.account(found, range(sent), range(sent))
    assert len(errors) == 3
    assert all(error.startswith("StoreUnavailableError") and SAID in error for error in errors), errors
    assert found == list(range(sent))


def test_a_drain_into_parquet_on_a_full_disk_says_so_and_goes_on_later(tmp_path: Path) -> None:
    """A real one, of 1 MB, which is then made larger."""
    folder = tmp_path / "lake"
    folder.mkdir()
    mount = mounting(folder)
    path, texts = str(tmp_path / "s"), random.Random(1)
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, t STRING")
    with rt.openSink(path, producer="a") as sink:
        sink.sendRows([(feeds.moment(n), texts.randbytes(500).hex()) for n in range(3000)])
        sink.close(complete=True)
    drain = '"$0" -m spark_rowtime.cli drain "$1" "$2"'
    script = f'{mount} && ! {drain} && mount -o remount,size=20m {folder} && {drain} && du -s "{folder}"'
    done = alone(script, sys.executable, path, f"parquet:{folder}/%Y/%m/%d")
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert int(done.stdout.split()[-2]) > 1024, "the rows are there"

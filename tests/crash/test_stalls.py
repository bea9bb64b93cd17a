"""Who stands still, and a disk that is full, hold up the others; they end nobody's lease, and readers go on."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import registration
from spark_rowtime.store.local import open_local
from tests.crash import feeds, stalls
from tests.crash.small_disk import alone, mounting
from tests.crash.victims import Victim
from tests.patience import LOCK_SECONDS, wait_long_for_locks
from tests.sparksession import wait_for


@pytest.fixture
def path(tmp_path: Path) -> str:
    rt.createStream(str(tmp_path / "s"), feeds.DDL)
    return str(tmp_path / "s")


@pytest.mark.long
@pytest.mark.parametrize("statement", ["INSERT INTO events", "COMMIT"])
def test_a_process_that_is_stopped_in_its_commit_ends_nobodys_lease(path: str, statement: str) -> None:
    """Another one waits in ``flush`` meanwhile, for longer than its lease; none of its rows is late afterwards."""
    stopped = Victim(stalls.stops, path, statement)
    pid = stopped.pipe.recv()
    feed = rt.openSink(path, producer="feed", linger=feeds.QUIET, lease="10 s")
    feed.sendRow((feeds.moment(1), 0))
    feed.flush()
    stopped.pipe.send("begin")
    wait_for(lambda: state_of(pid) == "T", "the process to stop")
    feed.sendRow((feeds.moment(2), 1))
    flush = threading.Thread(target=feeds.patiently, args=[feed.flush])
    flush.start()
    flush.join(12)
    assert flush.is_alive(), "the lock is held"
    os.kill(pid, signal.SIGCONT)
    assert stopped.pipe.recv() == "went on"
    flush.join()
    feed.sendRow((feeds.moment(3), 2))
    feed.flush()
    stopped.pipe.send("end")
    with open_local(path) as store:
        assert "detached" not in store.bounds().column("event").to_pylist()
        assert store.rejected().num_rows == 0
    feed.close()


def state_of(pid: int) -> str:
    """The state of a process; "T": it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_readers_go_on_while_another_process_holds_the_lock(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease is due, and a reader has a name: it cannot log the one, or register the other, and waits for neither.

    Who waits for the lock does so for minutes here: longer than a machine stands still.
    """
    wait_long_for_locks(monkeypatch.setitem)
    monkeypatch.setattr(registration, "TELL_SECONDS", LOCK_SECONDS)
    with rt.openSink(path, producer="lost", lease="1 ms", linger=feeds.QUIET) as lost:
        lost.sendRows([(feeds.moment(second), second) for second in range(3)])
        lost.flush()
        lost._scheduler.stop()
        reader = rt.openReader(path, order="arrival", follow=True, name="tail")
        holder = Victim(stalls.holds, path)
        assert holder.pipe.recv() == "holds"
        begun = time.monotonic()
        train = reader.read()
        assert train is not None
        assert train.rows.num_rows == 3
        assert reader.read(timeout=0.1) is None
        other = rt.openReader(path, order="arrival", name="other")
        assert [train.rows.num_rows for train in other] == [3]
        assert time.monotonic() - begun < LOCK_SECONDS, "nobody waited for the lock"
        warned = [record.getMessage() for record in caplog.records if "could not register" in record.getMessage()]
        assert [text.split("'")[1] for text in warned] == ["other"], "tail has registered before"
        assert holder.ask("let go") == "let go"
        for one in (reader, other):
            one._registration._next_at = 0  # it tries again after a second
            one.read(timeout=0)
            one.close()
    registered = {info.name: info.unread for info in rt.describeStream(path).readers}
    assert registered == {"tail": 0, "other": 0}


def test_a_disk_that_was_full_ends_no_lease(tmp_path: Path) -> None:
    """A real one, of 1 MB, where this machine lets us mount it."""
    mount = mounting(tmp_path)
    code = f"from tests.crash.stalls import disk_full; disk_full({str(tmp_path / 's')!r})"
    done = alone(f'{mount} && exec "$0" -c "$1"', sys.executable, code)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["refused"] == [True, True, True]
    assert found["read"] == [2, None], "the reader reads on"
    assert found["said"] == [], "the reader has registered before, and tries again"
    assert found["found"] == [4]
    assert found["held"], "the quiet one holds the clock"
    assert found["ends"], "until its lease is over"

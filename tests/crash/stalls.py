"""Processes that stand still with the lock of a catalog, and what happens on a full disk, for longer than leases."""

import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from spark_rowtime.reader.reader import RowReader
from spark_rowtime.reader.release import release
from spark_rowtime.store import registration
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import create_local, open_local
from spark_rowtime.store.settings import StreamSettings
from spark_rowtime.store.steady_clock import Reading
from tests.crash.feeds import QUIET, moment
from tests.crash.small_disk import fill
from tests.patience import LOCK_SECONDS
from tests.store.streams import SCHEMA, SECOND, Writer, at

LEASE = 30 * SECOND


def stops(pipe: Any, path: str, statement: str) -> None:
    """Stops itself before a statement of SQLite in a commit. When it goes on, its next commit judges the others.

    It attaches, says so, and begins when it is told to.
    """
    with rt.openSink(path, producer="stopped", linger=QUIET, lease=None) as sink:
        pipe.send(os.getpid())
        pipe.recv()
        sink.sendRow((moment(10), 0))
        sink.flush()
        catalog = sink._store._catalog.execute.__self__
        catalog.set_trace_callback(lambda sql: stop() if sql.startswith(statement) else None)
        sink.sendRow((moment(3600), 1))
        sink.flush()
        catalog.set_trace_callback(None)
        sink.sendRow((moment(7200), 2))
        sink.flush()
        pipe.send("went on")
        pipe.recv()


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def holds(pipe: Any, path: str) -> None:
    """Holds the lock of the catalog until it is told to let it go."""
    store = open_local(path)
    with store._transaction():
        pipe.send("holds")
        pipe.recv()
    pipe.send("let go")


def is_refused(call: Any) -> bool:
    try:
        call()
    except rt.StoreUnavailableError:
        return True
    return False


def disk_full(path: str) -> None:
    """The disk is full for a minute: a quiet producer fails to renew its lease, a busy one to commit, and one reads."""
    create_local(path, SCHEMA, StreamSettings())
    registration.TELL_SECONDS = LOCK_SECONDS  # a pause of the machine is none in which all attempts have failed
    time, said = [0], []
    logging.getLogger("spark_rowtime").addHandler(handler := logging.Handler())
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]

    def handle() -> Store:
        return open_local(path, steady=lambda: Reading("boot", time[0]), now=lambda: 0)

    quiet, busy = Writer(handle(), "quiet", lease=LEASE), Writer(handle(), "busy")
    reader = RowReader(handle(), release("arrival", None), follow=True, name="reader")
    quiet.send([10], floor=10)
    busy.send([20], floor=20)
    ballast = Path(path).with_name("ballast")
    fill(ballast)
    commit = busy.commit(floor=21)
    refused = [
        is_refused(lambda: quiet.store.renew("quiet", 1)),
        is_refused(lambda: busy.store.commit(commit)),
    ]
    read = [reader.read().rows.num_rows, reader.read(timeout=0)]
    time[0] += 2 * LEASE
    refused.append(is_refused(lambda: quiet.store.renew("quiet", 1)))
    ballast.unlink()
    busy.store.commit(commit)
    held = busy.store.head().floor == at(10)
    reader._registration._next_at = 0
    reader.read(timeout=0)
    found = [info.position.seq for info in busy.store.snapshot().readers]
    time[0] += LEASE + 1
    ends = busy.store.expire()
    print(json.dumps({"refused": refused, "read": read, "said": said, "held": held, "ends": ends, "found": found}))

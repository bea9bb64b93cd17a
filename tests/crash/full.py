"""Writers that meet a full disk, or directories that they may not write in, and go on when that is over."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from tests.crash.feeds import DDL, QUIET, moment
from tests.crash.small_disk import fill

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def rows_from(first: int, count: int) -> list[tuple[str, int]]:
    return [(moment(n / 1000), n) for n in range(first, first + count)]


def refusals(sink: rt.RowSink, sent: int, count: int) -> tuple[list[str], int]:
    """Sends and flushes until that fails; how it failed, twice, and how many rows were taken by then."""
    errors = []
    while not errors:
        sink.sendRows(rows_from(sent, count))
        sent += count
        errors = errors_of(sink.flush, sink.flush)
    return errors, sent


def errors_of(*calls: Callable[[], object]) -> list[str]:
    """Type and text of what the calls raise."""
    found = []
    for call in calls:
        try:
            call()
        except rt.RowtimeError as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def files_limited(pipe: Any, path: str, count: int, durability: str) -> None:
    """A limit on the size of files stands for a full disk: tells what failed and how many rows it sent in all."""
    with rt.openSink(path, producer="a", linger=QUIET, durability=durability) as sink:
        sink.sendRows(rows_from(0, count))
        sink.flush()
        largest = max(file.stat().st_size for file in Path(path).rglob("*") if file.is_file())
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 5_000, resource.RLIM_INFINITY))
        errors, sent = refusals(sink, count, count)
        resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
        sink.sendRows(rows_from(sent, 1))
        sink.flush("all of it")
    pipe.send((errors, sent + 1))


def pages_limited(pipe: Any, path: str) -> None:
    """SQLite itself finds its database full; with no linger, so that calls commit by themselves."""
    sink = rt.openSink(path, producer="a", linger="0 s", lease=None)
    limit = sink._store._catalog.execute
    (pages,) = limit("PRAGMA page_count").fetchone()
    limit(f"PRAGMA max_page_count = {pages + 3}")
    errors: list[str] = []
    sent = 0
    while not errors:
        errors = errors_of(lambda: sink.sendRows(rows_from(sent, 10)))  # noqa: B023
        sent += 0 if errors else 10
    errors += errors_of(lambda: sink.sendRows(rows_from(sent, 10)), sink.flush)
    limit("PRAGMA max_page_count = 1000000")
    sink.close()
    pipe.send((errors, sent))


def no_rights(pipe: Any, path: str) -> None:
    """Directories that nobody may write in, met by a user without rights; later they may be written in again."""
    folders = [Path(path), *(entry for entry in Path(path).iterdir() if entry.is_dir())]
    if os.getuid() == 0:
        for entry in [Path(path), *Path(path).rglob("*")]:
            os.chown(entry, 65534, 65534)
        os.setuid(65534)
    with rt.openSink(path, producer="a", linger=QUIET) as sink:
        for folder in folders:
            folder.chmod(0o555)
        errors, sent = refusals(sink, 0, 5000)
        for folder in folders:
            folder.chmod(0o755)
        sink.flush()
    pipe.send((errors, sent))


def disk_full(path: str) -> None:
    """On a small file system of its own: a ballast fills it, and is taken away."""
    rt.createStream(path, DDL)
    with rt.openSink(path, producer="a", linger=QUIET) as sink:
        sink.sendRows(rows_from(0, 10))
        sink.flush()
        ballast = Path(path).with_name("ballast")
        fill(ballast)
        errors, sent = refusals(sink, 10, 1000)
        errors += errors_of(lambda: rt.createStream(path + "2", DDL))
        ballast.unlink()
        sink.flush()
    with rt.openReader(path) as reader:
        found = [n for train in reader for n in train.rows.column("n").to_pylist()]
    print(json.dumps([errors, sent, found]))

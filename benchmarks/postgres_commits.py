"""Commits a second into a stream in PostgreSQL, against a bare psycopg transaction that inserts the same bytes.

One producer, and eight in processes of their own, which one stream orders. The server syncs each commit to its disk, as
it comes; and does not, which shows what else there is. Ours is ``sendRows`` and ``flush``. Both have the server to
themselves, taking turns.
"""

import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier as BarrierType
from pathlib import Path

import psycopg
from send_rate import SCHEMA, batch

import spark_rowtime as rt
from harness import report
from tests.postgresserver import NO_SERVER, PostgresServer, programs

ROWS = 100
"""Rows of a train: about 3 KB."""
WARM = 20
"""Commits of each producer that do not count."""
TURNS = 5
PATIENCE_SECONDS = 120
"""How long a producer may take for all its commits."""
CONTEXT = multiprocessing.get_context("spawn")
Work = Callable[[str, int, int, BarrierType], float]


def ours(url: str, number: int, commits: int, start: BarrierType) -> float:
    """Seconds for as many commits of one producer."""
    batches = [batch(n * ROWS, ROWS) for n in range(WARM + commits)]
    with rt.openSink(url, producer=f"p{number}", linger="1 hour") as sink:
        for n, rows in enumerate(batches):
            if n == WARM:
                begin = _together(start)
            sink.sendRows(rows)
            sink.flush()
        return time.perf_counter() - begin


def bare(url: str, _number: int, commits: int, start: BarrierType) -> float:
    """Seconds for as many transactions with the same bytes."""
    batches = [batch(n * ROWS, ROWS) for n in range(WARM + commits)]
    with psycopg.connect(url.rpartition("/")[0], autocommit=True) as connection:
        for n, rows in enumerate(batches):
            if n == WARM:
                begin = _together(start)
            with connection.transaction():
                connection.execute("INSERT INTO bare (bytes) VALUES (%b)", (rows.serialize().to_pybytes(),))
        return time.perf_counter() - begin


def _together(start: BarrierType) -> float:
    start.wait()
    return time.perf_counter()


def _run(work: Work, url: str, number: int, commits: int, start: BarrierType, answers: object) -> None:
    answers.put(work(url, number, commits, start))  # type: ignore[attr-defined]


def rate(work: Work, url: str, producers: int, commits: int) -> float:
    """Commits a second of all producers together."""
    start, answers = CONTEXT.Barrier(producers), CONTEXT.SimpleQueue()
    arguments = [(work, url, number, commits, start, answers) for number in range(producers)]
    running = [CONTEXT.Process(target=_run, args=each, daemon=True) for each in arguments]
    for process in running:
        process.start()
    for process in running:
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0, process.exitcode
    took = [answers.get() for _ in running]
    return producers * commits / max(took)


def measure(server: PostgresServer, producers: int, commits: int) -> tuple[list[float], list[float]]:
    """The rates of ours and of the bare transaction, in turns; streams and rows of earlier turns are removed."""
    mine, theirs = [], []
    for turn in range(TURNS):
        server.execute("DROP TABLE IF EXISTS bare")
        server.execute("CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bytes bytea NOT NULL)")
        server.execute("ALTER TABLE bare ALTER COLUMN bytes SET STORAGE EXTERNAL")
        path = server.url(f"bench/{producers}/{turn}")
        rt.createStream(path, SCHEMA, producers=[f"p{number}" for number in range(producers)])
        for work, found in ((ours, mine), (bare, theirs))[:: 1 if turn % 2 else -1]:
            found.append(rate(work, path if work is ours else server.url("none"), producers, commits))
        rt.deleteStream(path)
    return mine, theirs


def main(commits: int = 1000) -> None:
    place: Path | None = programs()
    if place is None:
        sys.exit(NO_SERVER)
    server = PostgresServer(place)
    try:
        for fsync in ("on", "off"):
            server.stop()
            server.start(fsync=fsync, full_page_writes=fsync)
            for producers in (1, 8):
                mine, theirs = measure(server, producers, commits // producers)
                synced = "" if fsync == "on" else ", not synced"
                what = f"PostgreSQL, {producers} producer{'s' if producers > 1 else ''}{synced}"
                report(what, mine, theirs, "commits/s", "bare transaction")
    finally:
        server.remove()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

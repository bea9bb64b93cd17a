"""Commits a second into a stream in PostgreSQL while a transaction of somebody else stays open, as the seconds pass.

The server keeps each old version of a row that the transaction may still see: of the stream's head, and of its
producers. A commit that walked them would become slower with each commit. The same without that transaction.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from postgres_commits import ROWS
from send_rate import SCHEMA, batch

import spark_rowtime as rt
from harness import report
from tests.postgresserver import NO_SERVER, PostgresServer, programs

PARTS = 10
"""The commits are measured in as many parts."""
PRODUCERS = 4
"""They commit in turn, so each of them is the weakest for a while."""


@contextmanager
def snapshot(server: PostgresServer) -> Iterator[None]:
    """A transaction that sees the database as it was, as ``pg_dump`` does."""
    with server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        other.execute("SELECT count(*) FROM pg_class")
        yield


def rates(path: str, commits: int) -> list[float]:
    """Commits a second, of each part."""
    found = []
    sinks = [rt.openSink(path, producer=f"p{number}", linger="1 hour") for number in range(PRODUCERS)]
    for part in range(PARTS):
        first = part * commits // PARTS
        batches = [batch((first + n) * ROWS, ROWS) for n in range(commits // PARTS)]
        begin = time.perf_counter()
        for n, rows in enumerate(batches):
            sinks[n % PRODUCERS].sendRows(rows)
            sinks[n % PRODUCERS].flush()
        found.append(len(batches) / (time.perf_counter() - begin))
    for sink in sinks:
        sink.close()
    return found


def main(commits: int = 20_000) -> None:
    place = programs()
    if place is None:
        sys.exit(NO_SERVER)
    server = PostgresServer(place)
    try:
        found = {}
        for held in (False, True):
            path = server.url(f"snapshot/{held}")
            rt.createStream(path, SCHEMA)
            if held:
                with snapshot(server):
                    found[held] = rates(path, commits)
            else:
                found[held] = rates(path, commits)
            print("with a snapshot   " if held else "without a snapshot", *(f"{rate:>7,.0f}" for rate in found[held]))
        last = [found[held][-PARTS // 5 :] for held in (True, False)]
        report(f"PostgreSQL, a snapshot of {commits:,} commits", *last, "commits/s", "without a snapshot")
    finally:
        server.remove()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

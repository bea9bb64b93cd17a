"""A reader that would let go what others need, or keep it for ever, by what it registers: with the guide's rights."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.store import cut_folding, open_store
from spark_rowtime.store.base import Store
from spark_rowtime.store.local import readers as local_readers
from spark_rowtime.store.postgres import registrations, waited_for
from spark_rowtime.store.postgres.removal import Collector
from spark_rowtime.store.snapshot import READS_TOPIC
from tests.postgresserver import PostgresServer
from tests.sparksession import wait_for
from tests.store.roles import SCHEMA
from tests.store.streams import place

CUTS, DATABASE = 8, "folded"


@pytest.fixture
def bounds(postgres: PostgresServer, database: str) -> Iterator[str]:
    """A stream of bounds with cuts, for the owner."""
    path = postgres.url("bounds", user="owner_ann_folded", database=database)
    rt.createStream(path, SCHEMA)
    send_bounds(path, range(CUTS))
    yield path
    rt.deleteStream(path, force=True)


def send_bounds(path: str, numbers: range) -> None:
    with rt.openSink(path, producer="shop", lease=None) as sink:
        for n in numbers:
            sink.sendRowtimeBound(f"2026-03-01 10:{n:02d}", cut={"orders": {0: n + 1}})
            sink.flush()


def store(postgres: PostgresServer, user: str, stream: str = "bounds") -> Store:
    return open_store(postgres.url(stream, user=f"{user}_{DATABASE}", database=DATABASE))


def register(attacker: Any, name: str, seq: int, reads: str = READS_TOPIC, stream: str = "bounds") -> None:
    attacker.execute(
        "SELECT rowtime.keep_reader(id, name, %s, %s, NULL, 1::bigint << 60, %s) FROM rowtime.streams WHERE name = %s",
        (name, seq, reads, stream),
    )


def folded(path: str, **limits: Any) -> int:
    """How many cuts there are after a ``gc`` by the owner."""
    with open_store(path) as opened:
        opened.gc(**limits)
        return len(list(opened.cuts()))


def test_a_reader_lets_nothing_go(
    postgres: PostgresServer, attacker: Any, bounds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by gc, not by commits; where a query of a writer does, a reader can only keep what it says to need."""
    monkeypatch.setattr(cut_folding, "FOLD_EVENTS", 2)
    monkeypatch.setattr(cut_folding, "FOLD_AGE_MICROS", -1)
    for reads in ("topic", "stream"):
        register(attacker, f"far {reads}", 1 << 60, reads)
    with open_store(bounds) as opened:
        at_end = {one.position.seq for one in opened.snapshot().readers}
        assert at_end == {opened.head().seq}, "no position is beyond the log's end"
    assert folded(bounds) == CUTS
    send_bounds(bounds, range(CUTS, CUTS + 3))
    assert folded(bounds) == CUTS + 3
    with store(postgres, "writer_ann") as writer:
        writer.keep("query of a writer", place(CUTS - 1), READS_TOPIC)
    assert folded(bounds) == CUTS + 3 - (CUTS - 3)
    register(attacker, "begins", 0)
    with store(postgres, "writer_ann") as writer:
        writer.keep("query of a writer", place(writer.head().seq), READS_TOPIC)
    assert folded(bounds) == CUTS + 3 - (CUTS - 3), "a reader's query is waited for"


@pytest.mark.parametrize("kind", ["directory", "database"])
def test_a_reader_lets_nothing_go_in_a_copy(
    postgres: PostgresServer, attacker: Any, bounds: str, tmp_path: Path, kind: str
) -> None:
    """A copy does not know whose a registration is; that of a writer does in it what it does in the stream."""
    database = postgres.url("copied", user="owner_ann_folded", database="folded")
    register(attacker, "far", 1 << 60)
    for user, left in (("reader", CUTS), ("writer", 1)):
        copy = database if kind == "database" else str(tmp_path / f"{user}.rowtime")
        rt.copyStream(bounds, copy)
        assert folded(copy) == left
        rt.deleteStream(copy, force=True)
        with store(postgres, "owner_ann") as owner:
            owner.forget("far") if user == "reader" else None
            owner.keep("far", place(owner.head().seq), READS_TOPIC)


@pytest.mark.parametrize("kind", ["directory", "database"])
def test_a_reader_keeps_nothing_for_ever_in_a_copy(
    postgres: PostgresServer, attacker: Any, bounds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Nor in a copy of the copy; what a writer has registered stays, and so does what is registered in the copy."""
    with store(postgres, "writer_ann") as writer:
        writer.keep("query of a writer", place(4), READS_TOPIC)
    register(attacker, "pinned", 0)
    copies = [
        postgres.url(name, user="owner_ann_folded", database="folded") if kind == "database" else str(tmp_path / name)
        for name in ("copied", "again")
    ]
    for source, copy in zip([bounds, copies[0]], copies, strict=True):
        rt.copyStream(source, copy)
        assert folded(copy) == CUTS
    for held in (waited_for, local_readers):
        monkeypatch.setattr(held, "HELD_MICROS", -1)
    for copy in copies:
        assert folded(copy) == CUTS - 2
    with open_store(copies[0]) as opened:
        assert [one.trusted for one in opened.snapshot().readers] == [False, True]
        opened.keep("pinned", place(0), READS_TOPIC)
        assert all(one.trusted for one in opened.snapshot().readers)
    for copy in copies:
        rt.deleteStream(copy, force=True)


def test_a_reader_keeps_nothing_for_ever(
    postgres: PostgresServer, attacker: Any, bounds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither cuts nor rows; what a writer has registered stays."""
    with store(postgres, "writer_ann") as writer:
        writer.keep("query of a writer", place(4), READS_TOPIC)
    register(attacker, "pinned", 0)
    assert folded(bounds) == CUTS
    monkeypatch.setattr(waited_for, "HELD_MICROS", -1)
    assert folded(bounds) == CUTS - 2

    rows = postgres.url("rows", user="owner_ann_folded", database="folded")
    rt.createStream(rows, SCHEMA)
    with rt.openSink(rows, producer="shop", lease=None) as sink:
        for n in range(4):
            sink.sendRow((f"2026-03-01 10:0{n}", n))
            sink.sendRowtimeBound(f"2026-03-01 10:0{n}")
            sink.flush()
    register(attacker, "pinned", 0, "stream", "rows")
    with store(postgres, "writer_ann", "rows") as writer:
        monkeypatch.undo()
        found = writer.gc(age=0)
        assert (found.rows, found.kept_for) == (0, "reader 'pinned' needs it")
        monkeypatch.setattr(waited_for, "HELD_MICROS", -1)
        writer.keep("writer's", place(3))
        found = writer.gc(age=0)
        assert found.rows > 0
        assert found.kept_for == 'reader "writer\'s" needs it'
    rt.deleteStream(rows, force=True)


def test_where_only_readers_query_old_cuts_go_by_the_streams_retention(
    postgres: PostgresServer, bounds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store(postgres, "reader_ann") as reader:
        reader.keep("query of a reader", place(6), READS_TOPIC)
    assert folded(bounds) == CUTS
    assert folded(bounds, age=3_600_000_000) == CUTS, "they are not that old"
    assert folded(bounds, age=0) == CUTS - 4
    monkeypatch.setattr(cut_folding, "FOLD_EVENTS", 2)
    monkeypatch.setattr(cut_folding, "FOLD_AGE_MICROS", -1)
    monkeypatch.setattr(Collector, "_due", lambda *_: False)  # a removal of rows goes first
    with open_store(bounds) as opened:
        opened.alter(change=lambda settings: replace(settings, retainAge=1))
    with store(postgres, "reader_ann") as reader:
        reader.keep("query of a reader", place(reader.head().seq), READS_TOPIC)
    send_bounds(bounds, range(CUTS, CUTS + 4))
    with open_store(bounds) as opened:
        wait_for(lambda: len(list(opened.cuts())) <= 5, "commits to fold what is older than the retention")


LIMITS = (-(1 << 63), -1, (1 << 63) - 1)


def test_no_registration_breaks_what_others_ask(postgres: PostgresServer, attacker: Any, bounds: str) -> None:
    """Whatever numbers it has, and however often; its name is a line."""
    for n, (seq, cut, now) in enumerate(product(LIMITS, (None, *LIMITS), LIMITS)):
        attacker.execute(
            "SELECT rowtime.keep_reader(id, name, %s, %s, %s, %s, 'stream') FROM rowtime.streams WHERE name = 'bounds'",
            (f"n{n}", seq, cut, now),
        )
        attacker.execute(
            "SELECT rowtime.report_account(id, name, 'reader', %s, %s, '{}') FROM rowtime.streams "
            "WHERE name = 'bounds'",
            (f"n{n}", now),
        )
    for name in ("x\ny", "\x1b[2J", "\x9b"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="control character"):
            register(attacker, name, 0)
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="control character"):
            attacker.execute(
                "SELECT rowtime.report_account(id, name, 'reader', %s, 0, '') FROM rowtime.streams "
                "WHERE name = 'bounds'",
                (name,),
            )
    with open_store(bounds) as opened:
        readers = opened.snapshot().readers
        assert {one.position.seq for one in readers} == {0, opened.head().seq}
        assert all(-60_000_000 < one.unseen < 600_000_000 for one in readers), "since the last event"
    assert len(rt.describeStream(bounds).readers) == 36
    for command in (["describe", bounds], ["why", bounds, "--at", "2026-03-01T11:00Z"], ["gc", bounds, "--age", "0 s"]):
        found = CliRunner().invoke(main, command)
        assert found.exception is None or isinstance(found.exception, SystemExit), command


def test_what_one_reader_registers_has_a_limit(postgres: PostgresServer, attacker: Any, bounds: str) -> None:
    most = registrations.MOST_ENTRIES
    many = "SELECT rowtime.keep_reader(id, name, 'r' || n, 0, NULL, 0, 'stream') FROM rowtime.streams, "
    attacker.execute(many + "generate_series(1, %s) n WHERE name = 'bounds'", (most,))
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="has 1000 of them already"):
        register(attacker, "one more", 0)
    register(attacker, "r1", 1)
    with store(postgres, "reader_ann") as ann:
        ann.keep("alerts", place(1))
    reports = "SELECT rowtime.report_account(id, name, 'reader', 'q' || n, 0, '{}') FROM rowtime.streams, "
    attacker.execute(reports + "generate_series(1, %s) n WHERE name = 'bounds'", (most,))
    for name, content in (("one more", "{}"), ("q1", "x" * (registrations.MOST_BYTES + 1))):
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            attacker.execute(
                "SELECT rowtime.report_account(id, name, 'reader', %s, 0, %s) FROM rowtime.streams "
                "WHERE name = 'bounds'",
                (name, content),
            )
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="a stream or a topic"):
        register(attacker, "r1", 1, "everything")
    with pytest.raises(psycopg.Error):
        register(attacker, "n" * 1_000_000, 1)

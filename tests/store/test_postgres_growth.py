"""What queries touch does not grow with the stream: the blocks of tables and indexes that the server reads for them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import psycopg.sql
import pytest

from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.postgres import log, records, removal, trains
from spark_rowtime.store.postgres.connection import SETTINGS, Statement
from spark_rowtime.store.settings import StreamSettings
from tests.postgresserver import PostgresServer
from tests.store.streams import SCHEMA, START, Writer, at, place

TRAINS = 20_000
FEW = 100
_GROWN = """
INSERT INTO rowtime.events SELECT {stream}, n + 1, 'sent', 'a', 0, NULL, {start} + 1000000, {start} + n * 1000000, n,
    1, {start} + n * 1000000, {start} + n * 1000000, 0, 208, 0 FROM generate_series(2::bigint, {trains}) n
"""
"""Rows of events like those of the store: one second from train to train, in order."""
_PRODUCERS = """
INSERT INTO rowtime.producers SELECT stream, 'p' || n, 'attached', {start} + 2000000 + n, lease, seen, sent, let_go,
    epoch, accepted, rejected, number, checkpoint, declaration, disorder, holder, receipt_seq, receipt_floor, era
FROM rowtime.producers, generate_series(1, {trains}) n WHERE stream = {stream} AND name = 'a'
"""


@pytest.fixture
def connection(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """As the store makes it."""
    with postgres.connect() as connection:
        connection.execute(SETTINGS)
        yield connection


def grown(postgres: PostgresServer, name: str, trains: int) -> int:
    """The number of a stream with so many trains, of which the store has written the first."""
    create_store(postgres.url(name), SCHEMA, StreamSettings())
    with open_store(postgres.url(name)) as store:
        Writer(store, "a").send([1], floor=1)
    ((stream,),) = postgres.execute(f"SELECT id FROM rowtime.streams WHERE name = '{name}'")
    postgres.execute(_GROWN.format(stream=stream, start=START, trains=trains))
    postgres.execute(_PRODUCERS.format(stream=stream, start=START, trains=trains))
    postgres.execute(f"UPDATE rowtime.heads SET seq = {trains + 1}, rows = {trains} WHERE stream = {stream}")
    return int(stream)


@pytest.fixture(scope="module")
def streams(postgres: PostgresServer) -> tuple[int, int]:
    """A short one, and a long one."""
    return grown(postgres, "growth/short", FEW), grown(postgres, "growth/long", TRAINS)


def questions(stream: int, last: int) -> list[Statement]:
    """What is asked for a batch, and for a commit: new trains, a train that is released, the log at an event, who has
    raised a bound, the oldest events, a producer, and the weakest and the strongest of the others."""
    middle, raised = last / 2, log.raised(stream, at(1) or 0, 0, last)
    return [
        *trains.slices_between(stream, place(last - 1, middle), place(last, middle + 1)),
        *trains.slices_between(stream, place(last, 1), place(last, 2)),
        *trains.slices_between(stream, place(last, last - 2), place(last, last - 1)),
        (log.AT, (stream, last)),
        raised,
        (removal.EVENTS, (stream, 0, 100)),
        (records.ONE, (stream, "a")),
        records.weakest_but(stream, "a"),
        records.strongest_but(stream, "a"),
        records.idle_but(stream, "a"),
    ]


def blocks(connection: psycopg.Connection[Any], question: Statement) -> int:
    """How many blocks the server reads or finds in its memory to answer. The statement is prepared, as psycopg does."""
    sql, values = question
    first, *rest = sql.split("%s")
    numbered = first + "".join(f"${number}{text}" for number, text in enumerate(rest, 1))
    connection.execute(f"PREPARE question AS {numbered}")
    given = ", ".join(psycopg.sql.Literal(value).as_string(connection) for value in values)
    asked = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE question ({given})"
    ((found,),) = connection.execute(asked).fetchall()
    connection.execute("DEALLOCATE question")
    return int(found[0]["Plan"]["Shared Hit Blocks"] + found[0]["Plan"]["Shared Read Blocks"])


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
def test_a_query_touches_as_much_of_a_large_stream_as_of_a_small_one(
    streams: tuple[int, int], connection: psycopg.Connection[Any], plans: str, analyzed: bool
) -> None:
    """Whatever the server knows of the tables, and whether it plans for the values or for any."""
    connection.execute(f"SET plan_cache_mode = {plans}")
    connection.execute("ANALYZE" if analyzed else "DELETE FROM pg_statistic")
    few, many = (
        [blocks(connection, question) for question in questions(stream, last)]
        for stream, last in zip(streams, (FEW, TRAINS), strict=True)
    )
    more = {
        question[0]: (short, long)
        for question, short, long in zip(questions(0, FEW), few, many, strict=True)
        if long > 3 * short + 20
    }
    assert more == {}

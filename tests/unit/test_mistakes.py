"""Typical mistakes: each error says what happened, with the value, and what to do about it."""

import gc
import pickle
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from unit_support import collect_leftovers

import spark_rowtime as rt
from spark_rowtime.cli import main
from spark_rowtime.producer import unclosed

SCHEMA = "rowtime TIMESTAMP NOT NULL, shop STRING, units INT"
SECONDS = 1157968800


class Mistake(NamedTuple):
    """A mistake, the class of its error, and a fragment of each of the three parts of the message."""

    make: Callable[[str], Any]
    kind: type[rt.RowtimeError]
    what: str
    value: str
    way_out: str


def at(clock: str) -> str:
    """``"9:00"`` of the examples' day as ISO 8601."""
    return f"2006-09-11T{clock:0>5}:00Z"


def stream(path: str, **options: Any) -> str:
    rt.createStream(path, SCHEMA, **options)
    return path


def sink(path: str, **options: Any) -> Any:
    """A sink of the producer Berlin of a new stream."""
    return rt.openSink(stream(path), producer="Berlin", **options)


def send(path: str, *rows: Any, **options: Any) -> None:
    with sink(path, **options) as berlin:
        for row in rows:
            berlin.sendRow(row)


def bounds(path: str, *times: Any) -> None:
    with sink(path) as berlin:
        for time in times:
            berlin.sendRowtimeBound(time)


def joined_late(path: str) -> None:
    with sink(path) as berlin:
        berlin.sendRowtimeBound(at("12:00"))
        berlin.flush()
        with rt.openSink(path, producer="Lisbon") as lisbon:
            lisbon.sendRow((at("11:00"), "a", 1))


def too_far_ahead(path: str) -> None:
    with rt.openSink(stream(path), producer="Berlin") as berlin:
        berlin.sendRow(("2126-09-11T10:00:00Z", "a", 1))


def two_of_one_name(path: str) -> None:
    old = sink(path)
    with rt.openSink(path, producer="Berlin"):
        try:
            old.sendRow((at("11:00"), "a", 1))
            old.flush()
        finally:
            old.abandon()


def pickled(path: str) -> None:
    with sink(path) as berlin:
        pickle.dumps(berlin)


def sent_after_close(path: str) -> None:
    berlin = sink(path)
    berlin.close()
    berlin.sendRow((at("11:00"), "a", 1))


def opened_when_complete(path: str, producer: str) -> None:
    sink(path).close(complete=True)
    rt.openSink(path, producer=producer)


def other_position(path: str) -> None:
    with rt.openReader(stream(f"{path}-other")) as reader:
        position = reader.position
    rt.openReader(stream(path), start=position)


def reads(path: str) -> Callable[[str], Any]:
    """A mistake that opens this path, and not one of its own."""
    return lambda _: rt.openReader(path)


def drained(path: str, consumer: Any) -> None:
    with rt.openReader(stream(path)) as reader:
        reader.drainTo(consumer)


class NoRun:
    schema = SCHEMA


class Feed:
    schema = SCHEMA

    def __init__(self, host: str) -> None:
        self.host = host

    def run(self, sink: rt.RowSink) -> None:
        """The feed is empty."""


class BoundsOnly:
    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        """Takes no rows."""


SCHEMAS = {
    "no rowtime": Mistake(
        lambda path: rt.createStream(path, "shop STRING"),
        rt.SchemaMismatchError,
        "A stream needs a column 'rowtime TIMESTAMP NOT NULL'",
        "['shop']",
        "Rename the event time column",
    ),
    "a DATE as rowtime": Mistake(
        lambda path: rt.createStream(path, "rowtime DATE NOT NULL"),
        rt.SchemaMismatchError,
        "rowtime must be a TIMESTAMP",
        "date32",
        "Declare 'rowtime TIMESTAMP NOT NULL'",
    ),
    "an unknown type": Mistake(
        lambda path: rt.createStream(path, "rowtime TIMESTAMP NOT NULL, units INTT"),
        rt.SchemaMismatchError,
        "cannot be read at column 'units'",
        "INTT",
        "Write DDL, such as",
    ),
    "a NOT NULL column is added": Mistake(
        lambda path: rt.alterStream(stream(path), add="coupon STRING NOT NULL"),
        rt.SchemaMismatchError,
        "cannot be added: the rows that the stream has already have no value",
        "'coupon'",
        "Leave NOT NULL out",
    ),
}
NAMES_AND_PATHS = {
    "a mistyped keyword": Mistake(
        lambda path: sink(path, latness="1 hour"),
        rt.UnknownOptionError,
        "openSink has no option",
        "'latness'",
        "Did you mean 'lateness'?",
    ),
    "the name of a sink": Mistake(
        lambda path: sink(path, name="Berlin"),
        rt.UnknownOptionError,
        "openSink has no option",
        "'name'",
        "Did you mean 'producer'?",
    ),
    "linger=None": Mistake(
        lambda path: sink(path, linger=None),
        rt.InvalidOptionError,
        "is not an interval",
        "linger=None",
        "Write a number and a unit, such as '1 hour'",
    ),
    "a choice that there is not": Mistake(
        lambda path: sink(path, onLate="drop"), rt.InvalidOptionError, "is neither", "onLate='drop'", "'reject'"
    ),
    "a producer without a name": Mistake(
        lambda path: rt.openSink(stream(path), producer=" "),
        rt.InvalidOptionError,
        "must not be empty",
        "producer=' '",
        "must not be empty",
    ),
    "a reader without a name": Mistake(
        lambda path: rt.openReader(stream(path), name=""),
        rt.InvalidOptionError,
        "must not be empty",
        "name=''",
        "must not be empty",
    ),
    "an empty path": Mistake(reads(""), rt.InvalidOptionError, "is empty", "path=''", "Give a directory"),
    "a path in a store that there is not": Mistake(
        reads("s3a://bucket/orders"),
        rt.InvalidOptionError,
        "There is no store for paths that begin with",
        "'s3a:/'",
        "Give a directory",
    ),
    "a stream in the memory of another process": Mistake(
        reads("memory://elsewhere"),
        rt.StreamNotFoundError,
        "in this process, and no other process can see it",
        "memory://elsewhere",
        "use a directory",
    ),
    "a stream is there already": Mistake(
        lambda path: stream(stream(path)), rt.StreamExistsError, "There is a stream at", "memory://", "existOk=True"
    ),
    "a mistyped producer": Mistake(
        lambda path: rt.closeProducer(stream(path, producers=["Berlin", "Oslo"]), "Berln"),
        rt.InvalidOptionError,
        "was ever attached to memory://",
        "'Berln'",
        "Did you mean 'Berlin'? Its producers are: 'Berlin', 'Oslo'.",
    ),
    "a mistyped order": Mistake(
        lambda path: rt.openReader(stream(path), order="time"),
        rt.InvalidOptionError,
        "is neither",
        "order='time'",
        "'arrival' nor 'rowtime'",
    ),
}
ROWS = {
    "a row out of order": Mistake(
        lambda path: send(path, (at("10:00"), "a", 1), (at("9:00"), "a", 1)),
        rt.LateRowError,
        "A row must not be below its producer's earlier rows and bounds",
        "at 2006-09-11T09:00:00Z, below the bound 2006-09-11T10:00:00Z",
        "Send rows in order, declare a lateness or kSort",
    ),
    "a row of a producer that joins late": Mistake(
        joined_late,
        rt.LateRowError,
        "the stream's since producer 'Berlin' sent rows or a bound",
        "of producer 'Lisbon' at 2006-09-11T11:00:00Z, below the bound 2006-09-11T12:00:00Z",
        "name this one in createStream(..., producers=[...])",
    ),
    "a row far in the future": Mistake(
        too_far_ahead,
        rt.LateRowError,
        "(now plus maxAhead)",
        "2126-09-11T10:00:00Z",
        "Correct the clock of the feed, give the stream a larger maxAhead (alterStream)",
    ),
    "a column is missing": Mistake(
        lambda path: send(path, {"rowtime": at("10:00"), "shop": "a"}),
        rt.SchemaMismatchError,
        "Row 0 does not fit the stream",
        "missing ['units']",
        "give None for a value that is absent",
    ),
    "a value of another type": Mistake(
        lambda path: send(path, (at("10:00"), "a", "three")),
        rt.SchemaMismatchError,
        "does not fit the column's type int32",
        "Row 0: units='three'",
        "Convert the value before it is sent",
    ),
    "seconds as a rowtime": Mistake(
        lambda path: send(path, (SECONDS, "a", 1)),
        rt.SchemaMismatchError,
        "rowtime is invalid",
        "1157968800 (int)",
        "datetime.fromtimestamp(seconds, UTC)",
    ),
    "a time that the clocks left out": Mistake(
        lambda path: send(path, ("2026-03-29T02:30:00", "a", 1), tz="Europe/Berlin"),
        rt.SchemaMismatchError,
        "2026-03-29T02:30:00 does not exist in Europe/Berlin",
        "2026-03-29T01:30:00Z, by the one after it 2026-03-29T00:30:00Z",
        "Send it with its offset from UTC",
    ),
    "one row where many are taken": Mistake(
        lambda path: sink(path).sendRows({"rowtime": at("10:00"), "shop": "a", "units": 1}),
        rt.SchemaMismatchError,
        "sendRows takes Arrow data or an iterable of rows",
        "not a dict",
        "sendRow takes one row",
    ),
}
BOUNDS = {
    "None": Mistake(
        lambda path: bounds(path, None),
        rt.InvalidOptionError,
        "is not a bound",
        "None",
        "Send a bound only where there is one",
    ),
    "a bound that goes back": Mistake(
        lambda path: bounds(path, at("12:00"), at("11:00")),
        rt.BoundRegressionError,
        "is weaker than what this sink has already promised",
        "2006-09-11T11:00:00Z' is weaker",
        "Send a later one; if rows come out of order, open the sink with lateness",
    ),
    "seconds": Mistake(
        lambda path: bounds(path, SECONDS),
        rt.InvalidOptionError,
        "is not a time",
        "1157968800 (int)",
        "datetime.fromtimestamp(seconds, UTC)",
    ),
    "a date": Mistake(
        lambda path: bounds(path, date(2006, 9, 11)),
        rt.InvalidOptionError,
        "is not a time",
        "datetime.date(2006, 9, 11)",
        "datetime.combine(day, time(), UTC)",
    ),
}
LIVES = {
    "two sinks of one producer": Mistake(
        two_of_one_name,
        rt.ProducerFencedError,
        "was taken over",
        "Producer 'Berlin'",
        "Find the other process that uses this name",
    ),
    "a sink in a UDF": Mistake(
        pickled,
        rt.NotSerializableError,
        "it belongs to the process that opened it",
        "A sink of memory://",
        "open one within the function",
    ),
    "a closed sink": Mistake(
        sent_after_close, rt.SinkClosedError, "is closed", "producer 'Berlin'", "Open it again under its name"
    ),
    "a complete producer": Mistake(
        lambda path: opened_when_complete(path, "Berlin"),
        rt.StreamCompleteError,
        "is complete: it was declared that it never sends again",
        "Producer 'Berlin' of memory://",
        "Send under another name",
    ),
    "a complete stream": Mistake(
        lambda path: opened_when_complete(path, "Oslo"),
        rt.StreamCompleteError,
        "is complete: every producer has declared that no row follows",
        "'Oslo'",
        "Create another stream",
    ),
    "a position of another stream": Mistake(
        other_position,
        rt.InvalidOptionError,
        "This position belongs to the stream",
        "the stream at this path is",
        "a reader with start='earliest' or a time",
    ),
}
PROGRAMS = {
    "an adapter without run": Mistake(
        lambda path: rt.runAdapter(NoRun, stream(path)),  # type: ignore[arg-type]
        rt.InvalidOptionError,
        "is not an adapter: the class has no run",
        "NoRun",
        "It needs schema, and either run(sink)",
    ),
    "an instance of an adapter": Mistake(
        lambda path: rt.runAdapter(Feed("localhost"), stream(path)),  # type: ignore[arg-type]
        rt.InvalidOptionError,
        "An adapter is given as its class",
        "not as an instance of Feed",
        "Give Feed itself, and what its constructor takes as arguments",
    ),
    "an unknown argument": Mistake(
        lambda path: rt.runAdapter(Feed, stream(path), arguments={"hots": "localhost"}),
        rt.UnknownOptionError,
        "has no argument",
        "'hots'",
        "Did you mean 'host'?",
    ),
    "a drain into an object without sendRows": Mistake(
        lambda path: drained(path, BoundsOnly()),
        rt.InvalidOptionError,
        "cannot be drained into: it has no sendRows",
        "BoundsOnly",
        "A sink needs sendRows(rows)",
    ),
    "a drain into a class": Mistake(
        lambda path: drained(path, rt.RowSink),
        rt.InvalidOptionError,
        "drainTo takes a sink, not the class",
        "RowSink",
        "Give an instance",
    ),
}
MISTAKES = {**SCHEMAS, **NAMES_AND_PATHS, **ROWS, **BOUNDS, **LIVES, **PROGRAMS}


@pytest.mark.filterwarnings("ignore::spark_rowtime.SinkNotClosedWarning")
@pytest.mark.parametrize("name", MISTAKES)
def test_the_error_has_three_parts(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(rt.RowtimeError) as caught:
        mistake.make(f"memory://mistake-{name.replace(' ', '-')}")
    assert type(caught.value) is mistake.kind
    for part in (mistake.what, mistake.value, mistake.way_out):
        assert part in str(caught.value)


SELLING = "orders.rowtime"
COMMANDS = {
    "a mistyped command": (["descrbe", SELLING], "No such command", "'descrbe'", "Did you mean 'describe'?"),
    "a mistyped option": (["tail", SELLING, "--folow"], "No such option", "'--folow'", "Did you mean '--follow'?"),
    "a mistyped path": (
        ["describe", "order.rowtime"],
        "There is nothing at",
        "order.rowtime",
        "Did you mean 'orders.rowtime', a stream in the same folder?",
    ),
    "the path of a file": (
        ["describe", "orders.csv"],
        "There is a file at",
        "orders.csv",
        "Give the path of a stream",
    ),
    "an argument without a value": (
        ["run", "json:JSONDecoder", SELLING, "--set", "port"],
        "is not of the form KEY=VALUE",
        "The --set number 1",
        "Write it as --set port=9000",
    ),
    "an unknown reader": (
        ["gc", SELLING, "--forget", "alert"],
        "is registered",
        "No reader 'alert'",
        "the registered readers are: 'alerts'",
    ),
    "an unknown producer": (
        ["detach", SELLING, "Berln"],
        "was ever attached",
        "No producer 'Berln'",
        "Did you mean 'Berlin'?",
    ),
    "a consumer without sendRows": (
        ["drain", SELLING, "json:JSONDecoder"],
        "is not a consumer: the class has no sendRows",
        "'json:JSONDecoder'",
        "It needs sendRows and sendRowtimeBound",
    ),
    "a stream in use is deleted": (
        ["delete", SELLING],
        "is still used",
        "producer 'Berlin' is attached",
        "Close or detach its producers",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a stream that has a producer, expects another one, and has a reader; and with a file."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "orders.csv").write_text("rowtime,units")
    path = stream(str(folder / SELLING), producers=["Berlin", "Oslo"])
    rt.openReader(path, name="alerts").close()
    with rt.openSink(path, producer="Berlin") as berlin:
        berlin.sendRow((at("10:00"), "a", 1))
        berlin.flush()
        yield folder


@pytest.mark.parametrize("name", COMMANDS)
def test_the_error_of_a_command_has_three_parts(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, *parts = COMMANDS[name]
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (1, 2)
    for part in parts:
        assert part in result.stderr


def test_a_stream_without_output_says_for_whom_it_waits(folder: Path) -> None:
    said = CliRunner().invoke(main, ["describe", str(folder / SELLING)]).stdout
    for part in ("bound     none", "'Oslo' (expected, has not opened)", "1 row(s) are accepted"):
        assert part in said


def test_a_sink_that_is_not_closed_warns_with_the_three_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = sink("memory://mistake-forgotten")
    collect_leftovers()
    monkeypatch.setattr(unclosed, "PATIENCE_SECONDS", 240)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del forgotten
        gc.collect()
    said = str(caught[0].message)
    for part in ("The sink of producer 'Berlin' on memory://mistake-forgotten was not closed", "with rt.openSink"):
        assert part in said

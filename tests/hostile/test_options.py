"""Any value of any option is taken or refused by an error that names option and value; nothing else happens."""

import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

import spark_rowtime as rt
from spark_rowtime.adapter.loading import load
from spark_rowtime.spark.hosted_watch import ensure_watched
from spark_rowtime.spark.options import READ, SPARKS_OWN, TABLES_OWN, TOPIC_TIME, WATCH, WRITE, Options
from spark_rowtime.spark.sink import RowtimeStreamWriter
from tests.hostile.feeds import MANY
from tests.hostile.kinds import ANYTHING

TEXTS = [
    "",
    " ",
    "-1",
    "0",
    "1e9",
    "NaN",
    "1 hour",
    "-1 hour",
    "1 parsec",
    "9" * 400 + " s",
    "true",
    "'",
    "\x00",
    "\ud800",
]
JSONS = ["{}", "[]", "null", '{"stream": 1}', '{"stream": 0, "order": [], "seq": "1", "cut": {}, "floor": 1e999}']
THINGS = [
    timedelta.max,
    timedelta.min,
    timedelta(0),
    2**63,
    -(2**63),
    10**30,
    True,
    0,
    -1,
    None,
    {"rowtime": "x"},
    {1: 2},
]
ODD = st.sampled_from([*TEXTS, *JSONS, *THINGS])
VALUES = ODD | ANYTHING


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("options") / "s.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, x INT")
    return path


def named(error: rt.RowtimeError, option: str) -> None:
    assert isinstance(error, rt.InvalidOptionError | rt.UnknownOptionError), repr(error)
    assert option in str(error)


def keywords(function: Any) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


@pytest.mark.search
@pytest.mark.parametrize("option", keywords(rt.openSink))
def test_options_of_open_sink(path: str, option: str) -> None:
    before = rt.describeStream(path).rows

    @MANY
    @given(VALUES)
    def check(value: Any) -> None:
        try:
            rt.openSink(path, **{option: value}).close()
        except rt.RowtimeError as error:
            named(error, option)
        assert rt.describeStream(path).rows == before

    check()


@pytest.mark.search
@pytest.mark.parametrize("option", keywords(rt.openReader))
def test_options_of_open_reader(path: str, option: str) -> None:
    @MANY
    @given(VALUES)
    def check(value: Any) -> None:
        try:
            rt.openReader(path, **{option: value}).close()
        except rt.RowtimeError as error:
            named(error, option)

    check()


@pytest.mark.search
@pytest.mark.parametrize("option", keywords(rt.createStream))
def test_options_of_create_stream(tmp_path: Path, option: str) -> None:
    numbers: Iterator[int] = iter(range(10**6))

    @MANY
    @given(VALUES)
    def check(value: Any) -> None:
        path = tmp_path / f"s{next(numbers)}"
        try:
            rt.createStream(str(path), "rowtime TIMESTAMP", **{option: value})
        except rt.RowtimeError as error:
            named(error, option)
            assert not path.exists()
        else:
            rt.openSink(str(path)).close()

    check()


@pytest.mark.search
@pytest.mark.parametrize("option", [name for name in READ if name not in ("path", "adapter")])
def test_options_of_a_spark_read(option: str) -> None:
    @MANY
    @given(st.sampled_from(TEXTS) | st.text(st.characters()))
    def check(value: str) -> None:
        try:
            Options({option: value, "path": "s"}, READ).check_read()
        except rt.RowtimeError as error:
            named(error, option)

    check()


KNOWN = {*map(str.lower, (*READ, *WRITE)), *SPARKS_OWN, *TABLES_OWN}
"""Options of ours, and what Spark puts among them; Hypothesis tries the words of the source, too."""


@pytest.mark.search
@MANY
@given(st.text(st.characters()))
def test_names_of_options(name: str) -> None:
    plain = name.lower().removeprefix("option.")
    assume(plain not in KNOWN and not plain.startswith(("adapter.", "lateness.")) and not name.startswith("spark."))
    for options in (READ, WRITE):
        with pytest.raises(rt.UnknownOptionError) as caught:
            Options({name: "x"}, options)
        assert name.lower().startswith("option.") or caught.value.values["option"] == name


def test_the_examples_reach_every_option_of_a_read() -> None:
    """Each option is looked at by ``check_read``: a wrong value shows at load(). Any text may name a column beside."""
    for option in set(READ) - {"path", "adapter", TOPIC_TIME, WATCH}:
        with pytest.raises(rt.InvalidOptionError, match=option):
            Options({option: "\x00", "path": "s"}, READ).check_read()
    with pytest.raises(rt.InvalidOptionError, match=WATCH):
        ensure_watched("s", "\x00")


@pytest.mark.search
@pytest.mark.parametrize("option", [name for name in WRITE if name != "path"])
def test_options_of_a_spark_write(path: str, option: str) -> None:
    output = from_arrow_schema(rt.describeStream(path).schema)

    @MANY
    @given(st.sampled_from(TEXTS) | st.text(st.characters()))
    def check(value: str) -> None:
        try:
            RowtimeStreamWriter(Options({option: value, "path": path}, WRITE), output)
        except rt.SchemaMismatchError as error:
            assert option == "rowtime"
            assert "no column" in str(error)
        except rt.RowtimeError as error:
            named(error, option)

    check()


SPECS = ["", ":", "a:", ":b", "os:path", "os:getcwd", "no.such:Thing", "..os:X", "../x:Y", "os;x:Y", "\x00:x", "os"]


@pytest.mark.parametrize("spec", [*SPECS, "x" * 100_000 + ":X"], ids=lambda spec: repr(spec[:20]))
def test_adapters_that_are_none(spec: str) -> None:
    with pytest.raises(rt.InvalidOptionError):
        load(spec)

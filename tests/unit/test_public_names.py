"""The public names: their types, repr, version, keywords; what cannot be pickled says so."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from unit_support import new_stream, row

import spark_rowtime as rt

ROOT = Path(__file__).resolve().parents[2]
FROM_SPARK = ("configure", "currentRowtimeBound", "jarPath")


def test_the_version_is_that_of_the_project() -> None:
    assert rt.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_every_public_name_is_in_dir_and_is_there() -> None:
    assert set(rt.__all__) <= set(dir(rt))
    assert [name for name in rt.__all__ if getattr(rt, name, None) is None] == []


def test_dir_and_import_star_know_the_names_from_spark_and_only_use_imports_pyspark() -> None:
    code = (
        "import sys, spark_rowtime as rt\n"
        f"assert set({FROM_SPARK!r}) <= set(dir(rt))\n"
        "assert rt.StreamSink and rt.ProducerDescription and rt.ReaderDescription\n"
        "assert 'pyspark' not in sys.modules\n"
        "assert rt.jarPath.__module__ == 'spark_rowtime.spark.session'\n"
        "assert 'pyspark' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.long
def test_a_type_checker_sees_every_public_type(tmp_path: Path) -> None:
    """As a user's program: right uses pass, and each wrong use is an error."""
    (tmp_path / "right.py").write_text(
        "from pyspark.sql import SparkSession\n"
        "import spark_rowtime as rt\n"
        "sink: rt.StreamSink = rt.openSink('orders', producer='Berlin')\n"
        "def names(p: rt.ProducerDescription, r: rt.ReaderDescription) -> str:\n"
        "    return p.name + r.name + rt.jarPath() + rt.__version__\n"
        "bound: rt.RowtimeBound | None = rt.currentRowtimeBound('window.end')\n"
        "builder: SparkSession.Builder = rt.configure(SparkSession.builder)\n"
    )
    (tmp_path / "wrong.py").write_text(
        "import spark_rowtime as rt\n"
        "rt.openSink('orders', produce='Berlin')\n"
        "rt.createStream('orders', 'rowtime TIMESTAMP NOT NULL', maxLags='1 hour')\n"
        "rt.jarPath() + 1\n"
        "rt.currentRowtimeBound(1)\n"
        "rt.configure()\n"
    )
    config = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]  # as make lint
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *config, "right.py", "wrong.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line.split(":")[:2] for line in ran.stdout.splitlines() if ": error:" in line]
    assert found == [["wrong.py", str(line)] for line in range(2, 7)], ran.stdout


UNKNOWN: dict[str, tuple[Callable[..., Any], str]] = {
    "produce": (rt.openSink, "producer"),
    "onlate": (rt.openSink, "onLate"),
    "maxlag": (lambda path, **known: rt.createStream(path, "rowtime TIMESTAMP NOT NULL", **known), "maxLag"),
    "followed": (rt.openReader, "follow"),
    "paths": (lambda _, **known: rt.describeStream(**known), "path"),
}


@pytest.mark.parametrize("keyword", UNKNOWN)
def test_an_unknown_keyword_names_the_nearest(keyword: str) -> None:
    call, nearest = UNKNOWN[keyword]
    with pytest.raises(rt.UnknownOptionError, match=f"has no option '{keyword}'. Did you mean '{nearest}'") as caught:
        call(new_stream(), **{keyword: None})
    assert caught.value.values == {"option": keyword, "nearest": nearest}


def test_an_unknown_keyword_that_is_like_no_other_gets_the_list() -> None:
    with pytest.raises(rt.UnknownOptionError, match=r"has no option 'xyz'\. The options are path, producer") as caught:
        rt.openSink("nowhere", xyz=1)  # type: ignore[call-arg]
    assert caught.value.values == {"option": "xyz", "nearest": None}


def test_the_operators_know_their_keywords() -> None:
    from spark_rowtime.operators import asofJoin, cascadingAggregate, slidingAggregate

    for operator, keyword, nearest in (
        (slidingAggregate, "intervall", "interval"),
        (cascadingAggregate, "win", "window"),
        (asofJoin, "tolerence", "tolerance"),
    ):
        with pytest.raises(rt.UnknownOptionError, match=f"Did you mean '{nearest}'"):
            operator(None, **{keyword: "1 hour"})


def test_signatures_are_those_that_are_written() -> None:
    assert list(inspect.signature(rt.openReader).parameters) == ["path", "order", "start", "hold", "follow", "name"]


WRONG: dict[str, tuple[Callable[[str], Any], str]] = {
    "linger": (lambda path: rt.openSink(path, linger=None), "linger=None is not an interval"),  # type: ignore[arg-type]
    "maxTrainRows": (lambda path: rt.openSink(path, maxTrainRows=0), "maxTrainRows=0 must be a whole number from 1 to"),
    "kSort": (lambda path: rt.openSink(path, kSort=True), "kSort=True must be a whole number, 0 or more"),
    "lateness of 'rowtime'": (lambda path: rt.openSink(path, lateness={"rowtime": None}), "is not an interval"),  # type: ignore[dict-item]
    "onLate": (lambda path: rt.openSink(path, onLate="ignore"), "is neither 'raise' nor 'reject'"),
    "durability": (lambda path: rt.openSink(path, durability="disk"), "is neither 'process' nor 'power'"),
    "order": (lambda path: rt.openReader(path, order="time"), "is neither 'arrival' nor 'rowtime'"),
    "retainBytes": (
        lambda path: rt.createStream(path + "2", "rowtime TIMESTAMP NOT NULL", retainBytes=-1),
        "retainBytes=-1 must be a whole number of bytes, 0 or more",
    ),
}


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_value_blames_its_own_argument(option: str) -> None:
    call, message = WRONG[option]
    with pytest.raises(rt.InvalidOptionError, match=message) as caught:
        call(new_stream())
    assert caught.value.values["option"] == option
    assert str(caught.value).startswith(option)


def test_a_sink_shows_path_producer_bound_and_state() -> None:
    path = new_stream()
    sink = rt.openSink(path, producer="Berlin", linger="1 hour")
    assert repr(sink) == f"<StreamSink of {path}: producer 'Berlin', no bound, open>"
    for time in ("10:00", "10:01", "10:02"):  # the last by the fast path, whose bound no call has recorded yet
        sink.sendRow(row(time))
    at = "every later row is at or after 2006-09-11T10:02:00Z"
    assert repr(sink) == f"<StreamSink of {path}: producer 'Berlin', {at}, open>"
    sink.close()
    assert repr(sink) == f"<StreamSink of {path}: producer 'Berlin', {at}, closed>"


def test_a_sink_that_was_taken_over_shows_it() -> None:
    path = new_stream()
    old = rt.openSink(path, producer="Berlin", lease="30 s")
    with rt.openSink(path, producer="Berlin"), old._lock:
        old._scheduler.lease._renewed_at -= 3_600_000_000
        old._scheduler.run_due()
        assert repr(old).endswith("taken over by another sink>")


def test_a_reader_shows_path_order_position_bound_and_state() -> None:
    path = new_stream()
    with rt.openSink(path) as sink:
        sink.sendRow(row("10:00"))
    with rt.openReader(path, name="report", follow=True) as reader:
        assert repr(reader) == f"<RowReader 'report' of {path}: order 'rowtime', seq 0, no bound, following>"
    assert repr(reader).endswith("closed>")
    with rt.openReader(path) as reader:
        assert reader.read() is not None
        assert "every later row is at or after 2006-09-11T10:00:00Z, open>" in repr(reader)


def test_a_stream_shows_path_bound_and_who_holds_it() -> None:
    path = new_stream()
    with rt.openSink(path, producer="Berlin") as sink:
        sink.sendRow(row("10:00"))
        sink.flush()
        assert repr(rt.describeStream(path)) == (
            f"<StreamInfo of {path}: every later row is at or after 2006-09-11T10:00:00Z, waits for 'Berlin', 1 rows, "
            "0 rejected, 1 producers, 0 readers, seq 2>"
        )
    assert "waits for nobody: of the producers of" in repr(rt.describeStream(path))


@pytest.mark.parametrize("write", [pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy])
def test_a_sink_or_a_reader_that_is_pickled_says_what_to_do(write: Callable[[Any], Any]) -> None:
    path = new_stream()
    with rt.openSink(path) as sink, rt.openReader(path) as reader:
        for kind, instead in ((sink, "df.writeStream"), (reader, "spark.readStream")):
            with pytest.raises(
                rt.NotSerializableError, match=f"open one within the function; or use {instead}"
            ) as caught:
                write(kind)
            assert caught.value.values["path"] == path


def test_a_function_that_uses_a_sink_is_refused_when_spark_takes_it() -> None:
    """As Spark does it with a UDF: it pickles the function with all that it refers to."""
    from pyspark.errors import PySparkPicklingError
    from pyspark.serializers import CloudPickleSerializer

    with (
        rt.openSink(new_stream()) as sink,
        pytest.raises((rt.NotSerializableError, pickle.PicklingError, PySparkPicklingError)) as caught,
    ):
        CloudPickleSerializer().dumps(sink.sendRow)
    assert "open one within the function" in str(caught.value)

"""The tree of errors."""

import inspect
import pickle
import subprocess
import sys

import pytest

import spark_rowtime as rt
from spark_rowtime import errors

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, rt.RowtimeError)]


def test_there_is_one_root():
    assert len(KINDS) == 30
    others = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind not in KINDS]
    assert [kind for kind in others if issubclass(kind, Exception)] == [
        rt.ReaderNotRegisteredWarning,
        rt.SinkNotClosedWarning,
    ]
    assert rt.RowtimeError.__bases__ == (Exception,)


@pytest.mark.parametrize("kind", KINDS)
def test_each_pickles_whole(kind):
    bound = rt.RowtimeBound("2006-09-11T12:05:00", strict=True)
    error = kind("what happened; what to do", producer="P", bound=bound, rows=3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "what happened; what to do"
    assert again.values == {"producer": "P", "bound": bound, "rows": 3}
    assert pickle.loads(pickle.dumps(kind("bare"))).values == {}


def test_a_text_that_is_long_loses_its_middle():
    """Its end says what to do. Texts of usual length stay whole, also those of thousands of characters."""
    error = rt.RowtimeError("It has " + "x" * 30_000_000 + ". Make it shorter.", path="p" * 10_000, rows=3)
    assert 7000 < len(str(error)) <= errors.TEXT_CHARACTERS
    assert str(error).startswith("It has xxx")
    assert str(error).endswith("xxx. Make it shorter.")
    assert "... (30000025 characters) ..." in str(error)
    assert (len(error.values["path"]) < 9000, error.values["rows"]) == (True, 3)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(rt.RowtimeError("y" * errors.TEXT_CHARACTERS)) == "y" * errors.TEXT_CHARACTERS


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:sEcReT@db:5432/shop",
        "delta:s3://AK:sEcReT@b/x",
        "x://:sEc@ReT@h",
        "postgresql://db/shop?password=sEcReT&x=1",
        "postgresql://db/shop/s#password=sEcReT",
        "postgresql://u%3AsEcReT@db/shop",
        "postgresql://?host=u:sEcReT@db",
        "postgresql:///shop?dbname=x&host=u%3asEcReT%40db",
        "delta:az://box/t?sv=2024-11-04&sig=sEcReT%3D",
        "s3://bucket/t?X-Amz-Date=1&X-Amz-Signature=sEcReT&X-Amz-Expires=60",
        "s3://bucket/t?aws_secret_access_key=sEcReT",
        "https://host/t?access_token=sEcReT",
    ],
)
def test_no_text_repeats_a_password_in_an_address(address):
    error = rt.RowtimeError(f"{address!r} is of another kind.", path=address)
    assert "ReT" not in f"{error} {error.values} {pickle.loads(pickle.dumps(error))}"
    assert "***" in str(error)
    assert "?" not in address or address.split("?")[0] in str(error)
    for other in ("postgresql://db:5432/shop/a@b", "memory://a", "10:00 @ Oslo", "a://b c:d@e"):
        assert str(rt.RowtimeError(other)) == other


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_public_and_in_the_tree_of_the_docstring(kind):
    assert getattr(rt, kind.__name__) is kind
    assert kind.__name__ in rt.__all__
    assert f" {kind.__name__} " in errors.__doc__ or errors.__doc__.count(kind.__name__) == 1
    assert kind.__doc__


def test_errors_that_are_raised_pickle_too():
    """With the values that they really carry."""
    path = "memory://errors-that-are-raised"
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL")
    with rt.openSink(path, producer="P") as sink:
        sink.sendRowtimeBound("2006-09-11T12:05:00")
        for call in (
            lambda: sink.sendRowtimeBound("2006-09-11T12:04:00"),
            lambda: sink.sendRow({"rowtime": "2006-09-11T12:04:00"}),
            lambda: sink.sendRow({"rowtime": object()}),
            lambda: rt.createStream(path, "rowtime TIMESTAMP NOT NULL"),
            lambda: rt.openReader(path, start="whenever"),
        ):
            with pytest.raises(rt.RowtimeError) as caught:
                call()
            again = pickle.loads(pickle.dumps(caught.value))
            assert (type(again), str(again)) == (type(caught.value), str(caught.value))


def test_the_package_imports_without_pyspark():
    code = "import sys, spark_rowtime; sys.exit(any(name.partition('.')[0] == 'pyspark' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

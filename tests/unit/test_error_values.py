"""Each class of errors says in its docstring which keys ``values`` may have, and no error has others."""

import ast
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit_support import new_stream, row

import spark_rowtime as rt
from spark_rowtime import errors

PACKAGE = Path(rt.__file__).parent
KINDS = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, rt.RowtimeError) and kind is not rt.RowtimeError
}


OF_USERS = {"MessageNotReadyError"}
"""Errors that only the code of users raises."""


def documented(kind: type) -> set[str]:
    return set(re.findall(r"^\s*- ``(\w+)``:", kind.__doc__ or "", re.MULTILINE))


def keys_of(call: ast.Call) -> set[str]:
    """The keys of a construction, with those of ``**origin_values(...)``; ``**error.values`` has another error's."""
    named = {key.arg for key in call.keywords if key.arg}
    spread = [ast.unparse(key.value) for key in call.keywords if not key.arg]
    whose = any(value.startswith("origin_values(") for value in spread)
    return named | ({"boundOf", "boundBy", "boundEvent"} if whose else set())


def raised() -> list[tuple[str, str, set[str]]]:
    """Each construction of an error in the sources: where it is, the class, and the keys."""
    return [
        (f"{path.relative_to(PACKAGE)}:{call.lineno}", call.func.id, keys_of(call))
        for path in PACKAGE.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in KINDS
    ]


RAISED = raised()


@pytest.mark.parametrize("name", KINDS)
def test_a_docstring_says_which_keys_values_has(name: str) -> None:
    assert "``values``" in (KINDS[name].__doc__ or "")


@pytest.mark.parametrize("name", KINDS)
def test_no_error_has_a_key_that_its_docstring_does_not_name_and_each_named_key_is_used(name: str) -> None:
    places = [(where, keys) for where, kind, keys in RAISED if kind == name]
    assert bool(places) is (name not in OF_USERS)
    assert [(where, keys) for where, keys in places if not keys <= documented(KINDS[name])] == []
    assert documented(KINDS[name]) == set().union(*(keys for _, keys in places))


def closed(path: str) -> None:
    sink = rt.openSink(path)
    sink.close()
    sink.flush()


def fenced(path: str) -> None:
    old, new = rt.openSink(path, producer="P", lease=None), rt.openSink(path, producer="P")
    try:
        with new:
            old.flush(checkpoint="1")
    finally:
        old.abandon()


def late(path: str) -> None:
    with rt.openSink(path) as sink:
        sink.sendRow(row("10:00"))
        sink.sendRow(row("9:00"))


def regressing(path: str) -> None:
    with rt.openSink(path) as sink:
        sink.sendRowtimeBound("2006-09-11T10:00:00Z")
        sink.sendRowtimeBound("2006-09-11T09:00:00Z")


def misfitting(path: str) -> None:
    with rt.openSink(path) as sink:
        sink.sendRow({**row("9:00"), "ticker": 7})


def damaged(path: str) -> None:
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, ticker STRING")
    with rt.openSink(path) as sink:
        sink.sendRow(row("10:00"))
    (segment,) = (Path(path) / "segments").iterdir()
    os.truncate(segment, segment.stat().st_size // 2)
    with rt.openReader(path) as reader:
        list(reader)


def deleted(path: str) -> None:
    """A position of a stream that is shorter now."""
    with rt.openReader(path) as reader:
        position = reader.position.replace('"seq": 0', '"seq": 9')
    with rt.openReader(path, start=position) as reader:
        list(reader)


CAUSES: dict[type[rt.RowtimeError], tuple[Callable[[str], Any], set[str]]] = {
    rt.LateRowError: (late, {"producer", "rows", "bound", "boundOf", "boundBy", "boundEvent"}),
    rt.BoundRegressionError: (regressing, {"bound", "said"}),
    rt.SchemaMismatchError: (misfitting, {"row", "column", "value"}),
    rt.StreamNotFoundError: (lambda path: rt.openReader(path + "-not"), {"path"}),
    rt.StreamExistsError: (lambda path: rt.createStream(path, "rowtime TIMESTAMP NOT NULL"), {"path"}),
    rt.SinkClosedError: (closed, {"producer"}),
    rt.ProducerFencedError: (fenced, {"producer", "epoch", "current"}),
    rt.DataLostError: (deleted, {"path", "asked", "last"}),
    rt.UnknownOptionError: (lambda path: rt.openSink(path, late=1), {"option", "nearest"}),  # type: ignore[call-arg]
    rt.InvalidOptionError: (lambda path: rt.openSink(path, kSort=-1), {"option", "value"}),
}


@pytest.mark.parametrize("kind", CAUSES, ids=lambda kind: kind.__name__)
def test_an_error_has_the_keys_and_its_message_the_values(kind: type[rt.RowtimeError]) -> None:
    cause, keys = CAUSES[kind]
    with pytest.raises(kind) as caught:
        cause(new_stream())
    assert set(caught.value.values) == keys


def test_damage_names_the_file_and_the_place(tmp_path: Path) -> None:
    with pytest.raises(rt.StoreCorruptError) as caught:
        damaged(str(tmp_path / "s.rowtime"))
    assert set(caught.value.values) == {"file", "offset", "train"}

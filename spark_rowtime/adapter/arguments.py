"""An adapter's arguments: keywords of its constructor, given as texts on the command line and beside Spark.

An argument may be a password. No error here shows a value.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

from spark_rowtime.errors import InvalidOptionError, UnknownOptionError
from spark_rowtime.types.arguments import did_you_mean, nearest

_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_OR_NONE = re.compile(r"\s*\|\s*None\b|\bNone\s*\|\s*")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_OPTIONAL = re.compile(r"(?:typing\.)?Optional\[(.*)\]")


def check_names(adapter: type, name: str, given: Mapping[str, Any]) -> None:
    """Checks that the constructor of ``adapter`` has all ``given`` keywords, and needs no other ones.

    ``name`` is the adapter's name in error messages. Raises UnknownOptionError, or InvalidOptionError if a keyword is
    missing.
    """
    parameters = _parameters(adapter)
    known = [p.name for p in parameters if p.kind in _BY_NAME]
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        for key in given:
            if key not in known:
                raise _unknown(name, key, known)
    missing = [key for key in required(adapter) if key not in given]
    if missing:
        raise InvalidOptionError(
            f"Adapter {name!r} needs {' and '.join(missing)}. Give it as rowtime run --set {missing[0]}=VALUE, beside "
            f"a Spark query as option('adapter.{missing[0]}', VALUE), or in Python as "
            f"arguments={{{missing[0]!r}: VALUE}}.",
            adapter=name,
            missing=missing,
        )


def required(made: type) -> list[str]:
    """Returns the names of the arguments that the constructor of ``made`` has no default for."""
    return [p.name for p in _parameters(made) if p.kind in _BY_NAME and p.default is Parameter.empty]


def from_texts(adapter: type, name: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Returns keywords for the constructor of ``adapter``: each text in the type that its parameter is annotated with.

    The types are str, int, float and bool, also with ``| None``; without an annotation it is str. Raises
    UnknownOptionError for an unknown name; InvalidOptionError for a missing one, for another annotation, and for a text
    that is no value of the type.
    """
    check_names(adapter, name, texts)
    annotations = {p.name: p.annotation for p in _parameters(adapter) if p.kind in _BY_NAME}
    return {key: _value(name, key, text, annotations.get(key, Parameter.empty)) for key, text in texts.items()}


def in_any_case(adapter: type, texts: Mapping[str, str]) -> dict[str, str]:
    """Returns ``texts``, whose names may be in another case, under the names of the constructor's parameters."""
    exact = {p.name.lower(): p.name for p in _parameters(adapter) if p.kind in _BY_NAME}
    return {exact.get(key.lower(), key): text for key, text in texts.items()}


def _parameters(adapter: type) -> list[Parameter]:
    try:
        return list(inspect.signature(adapter).parameters.values())
    except ValueError:  # a class that is written in C
        return []


def _unknown(name: str, key: str, known: list[str]) -> UnknownOptionError:
    near = nearest(key, known)
    has = f"It has {', '.join(known)}." if known else "It has none: its constructor takes no keywords."
    return UnknownOptionError(
        f"Adapter {name!r} has no argument {key!r}.{did_you_mean(near)} {has}",
        adapter=name,
        option=key,
        nearest=near,
    )


def _value(name: str, key: str, text: str, annotation: Any) -> Any:
    kind = _kind(annotation)
    if kind not in _TYPES:
        raise InvalidOptionError(
            f"The argument {key!r} of adapter {name!r} is annotated {kind}, and cannot be given as a text. Annotate it "
            f"as one of {', '.join(_TYPES)}, and convert it in the constructor.",
            adapter=name,
            option=key,
        )
    what, read = _TYPES[kind]
    try:
        return read(text)
    except (ValueError, KeyError):
        pass
    raise InvalidOptionError(
        f"The argument {key!r} of adapter {name!r} must be {what}, and its text is not. (Arguments are not shown: "
        "they may be secret.)",
        adapter=name,
        option=key,
    )


def _kind(annotation: Any) -> str:
    """The name of the annotated type, without ``None``; of several the text. An annotation may be a text itself."""
    if annotation in (Parameter.empty, Any):
        return "str"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    optional = _OPTIONAL.fullmatch(text.strip("'\" "))
    kind = _OR_NONE.sub("", optional[1] if optional else text.strip("'\" "))
    return "str" if "str" in _alternatives(kind) else kind


def _alternatives(kind: str) -> list[str]:
    """The types of ``A | B``, without what is in brackets behind them."""
    while kind != (bare := _BRACKETS.sub("", kind)):
        kind = bare
    return [one.strip() for one in kind.split("|")]


_TYPES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "str": ("a text", str),
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
}

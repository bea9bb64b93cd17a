"""Makes the target of an announcer from its text, such as ``success-file:out/date=%Y-%m-%d``, and its options."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_rowtime.announce import airflow, dagster
from spark_rowtime.announce.airflow import AirflowAsset
from spark_rowtime.announce.dagster import DagsterAsset
from spark_rowtime.announce.http_call import HttpCall
from spark_rowtime.announce.names import PeriodName
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.success_file import SuccessFile, require_local
from spark_rowtime.announce.target import Target
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.periods import Unit
from spark_rowtime.types.arguments import did_you_mean, nearest, to_choice, to_count
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import to_required_interval

KINDS = ("success-file", "http", "airflow", "dagster")
METHODS = ("POST", "PUT", "GET")
_OPTIONS = {
    "success-file": (),
    "http": ("key", "body", "headers", "method", "taken", "timeout"),
    "airflow": ("key", "asset", "headers", "timeout"),
    "dagster": ("key", "asset", "headers", "timeout"),
    "function": ("key",),
}
TIMEOUT = "30 s"
_FAILURES = range(300, 600)
_LEAST_TIMEOUT_MICROS, _MOST_TIMEOUT_MICROS = 1_000, 3_600_000_000


@dataclass(frozen=True, slots=True)
class Made:
    """A target, the names of its periods, and a label that tells announcers with different targets apart.

    ``merges``: two hours with the same clock time are one period, as for ``Calendar``.
    """

    target: Target
    name: PeriodName
    merges: bool
    label: str


class Function:
    """Calls a function of the user's. What it raises is raised."""

    def __init__(self, function: Callable[[Period], object]) -> None:
        self._function = function

    def announce(self, period: Period, call: str) -> None:  # noqa: ARG002
        """Calls the function."""
        self._function(period)


def make(to: Any, unit: Unit, options: Mapping[str, Any]) -> Made:
    """Makes a target. ``options`` are the keywords of ``announceTo`` for targets; None: not given."""
    kind, place = _kind_and_place(to)
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(given.get("headers", {}), Mapping):
        raise InvalidOptionError("headers must be a dict of names and values.", option="headers")
    _require_options(kind, given)
    if kind == "success-file":
        require_local(place)
        name = PeriodName(place, "to", unit)
        return Made(SuccessFile(), name, not name.hasOffset, _label(kind, place))
    name = PeriodName(_text(given.pop("key", None), "key") or _default_key(kind, unit), "key", unit)
    if kind == "function":
        return Made(Function(to), name, merges=False, label=_label(kind, place))
    timeout = _seconds(given.pop("timeout", TIMEOUT))
    target = _over_http(kind, place, dict(given.pop("headers", {})), timeout, given)
    label = _label(kind, f"{place} {given.get('asset', '')}")
    return Made(target, name, merges=kind == "airflow" and not name.hasOffset, label=label)


def _over_http(kind: str, url: str, headers: dict[str, str], timeout: float, given: Mapping[str, Any]) -> Target:
    if kind == "http":
        method = to_choice(given.get("method", METHODS[0]), "method", *METHODS)
        body, taken = _text(given.get("body"), "body"), _statuses(given.get("taken", ()))
        return HttpCall(url, body=body, headers=headers, method=method, timeout=timeout, taken=taken)
    asset = _text(given.get("asset"), "asset")
    if not asset:
        raise InvalidOptionError(f"to={kind}: needs asset, the name of the asset in {kind.title()}.", option="asset")
    return (AirflowAsset if kind == "airflow" else DagsterAsset)(url, asset, headers=headers, timeout=timeout)


def _kind_and_place(to: Any) -> tuple[str, str]:
    """The kind of a target, and its URL, pattern or function as a text."""
    if callable(to):
        return "function", f"{getattr(to, '__module__', '')}:{getattr(to, '__qualname__', type(to).__qualname__)}"
    kind, colon, place = to.partition(":") if isinstance(to, str) else ("", "", "")
    if kind in ("http", "https") and place.startswith("//"):
        return "http", to
    if kind in KINDS and place:
        return kind, place
    raise _no_target(kind if colon else "")


def _no_target(kind: str) -> InvalidOptionError:
    """The error for a target of no known kind. It shows the kind only, since what follows may hold a secret."""
    given = f"to={short_repr(kind)}:... is no target" if kind else "to needs a kind, a colon and a place"
    near = None if kind in KINDS else nearest(kind, KINDS)
    return InvalidOptionError(
        f"{given}.{did_you_mean(near)} Give success-file:PATTERN, http:URL, airflow:URL or dagster:URL, or a function.",
        option="to",
    )


def _require_options(kind: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _OPTIONS[kind]:
            kinds = " and ".join(kind for kind, options in _OPTIONS.items() if name in options)
            raise InvalidOptionError(f"{name} is an option for {kinds}, not for {kind}. Leave it out.", option=name)


def _default_key(kind: str, unit: Unit) -> str:
    return dagster.default_key(unit) if kind == "dagster" else airflow.KEY


def _text(value: Any, name: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidOptionError(f"{name}={short_repr(value)} must be a text.", option=name, value=short_repr(value))


def _statuses(taken: Any) -> frozenset[int]:
    """The statuses besides 2xx that say that a call is taken."""
    statuses = taken if isinstance(taken, Iterable) and not isinstance(taken, str) else (taken,)
    found = frozenset(to_count(status, "taken") for status in statuses)
    if not found <= set(_FAILURES):
        raise InvalidOptionError(
            f"taken={short_repr(taken)} must be statuses from {_FAILURES.start} to {_FAILURES.stop - 1}, such as 409. "
            "2xx counts as taken anyway.",
            option="taken",
            value=short_repr(taken),
        )
    return found


def _seconds(timeout: Any) -> float:
    micros = to_required_interval(timeout, "timeout")
    if not _LEAST_TIMEOUT_MICROS <= micros <= _MOST_TIMEOUT_MICROS:
        raise InvalidOptionError(
            f"timeout={short_repr(timeout)} must be from 1 ms to 1 hour.", option="timeout", value=short_repr(timeout)
        )
    return micros / 1_000_000


def _label(kind: str, place: str) -> str:
    """The kind with a digest of the rest, which may be secret."""
    return f"{kind}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"

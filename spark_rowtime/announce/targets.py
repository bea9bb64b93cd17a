"""Makes the target of an announcer from its text, such as ``success-file:out/date=%Y-%m-%d``, and its options."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_rowtime.announce.http_call import HttpCall
from spark_rowtime.announce.names import PeriodName
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.success_file import SuccessFile, require_local
from spark_rowtime.announce.target import PLUGINS, AssetTarget, Target
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.periods import Unit
from spark_rowtime.types.arguments import did_you_mean, nearest, to_choice, to_count
from spark_rowtime.types.plugins import plugin, plugin_names
from spark_rowtime.types.short_repr import short_repr
from spark_rowtime.types.timestamps import HOUR_MICROS, SECOND_MICROS, to_required_interval

METHODS = ("POST", "PUT", "GET")
_OPTIONS = {
    "success-file": (),
    "http": ("key", "body", "headers", "method", "taken", "timeout"),
    "function": ("key",),
}
_ASSET_OPTIONS = ("key", "asset", "headers", "timeout")
"""The options of kinds that packages add."""
KEY = "%Y-%m-%dT%H:%M:%S"
"""The default form of the names of periods."""
TIMEOUT = "30 s"
_FAILURES = range(300, 600)
_LEAST_TIMEOUT_MICROS, _MOST_TIMEOUT_MICROS = 1_000, HOUR_MICROS


@dataclass(frozen=True, slots=True)
class NamedTarget:
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


def named_target(to: Any, unit: Unit, options: Mapping[str, Any]) -> NamedTarget:
    """Makes a target. ``options`` are the keywords of ``announceTo`` for targets; None: not given."""
    kind, place = _kind_and_place(to)
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(given.get("headers", {}), Mapping):
        raise InvalidOptionError(
            "headers must be a dict of names and values, such as {'X-Team': 'sales'}.", option="headers"
        )
    _require_options(kind, given)
    if kind == "success-file":
        require_local(place)
        name = PeriodName(place, "to", unit)
        return NamedTarget(SuccessFile(place), name, not name.hasOffset, _label(kind, place))
    asset_target: type[AssetTarget] | None = None if kind in _OPTIONS else plugin(PLUGINS, kind)
    default = KEY if asset_target is None else asset_target.default_key(unit)
    name = PeriodName(_text(given.pop("key", None), "key") or default, "key", unit)
    if kind == "function":
        return NamedTarget(Function(to), name, merges=False, label=_label(kind, place))
    over: dict[str, Any] = {
        "headers": dict(given.pop("headers", {})),
        "timeout": _seconds(given.pop("timeout", TIMEOUT)),
    }
    label = _label(kind, f"{place} {given.get('asset', '')}")
    if asset_target is None:
        return NamedTarget(_http_call(place, given, **over), name, merges=False, label=label)
    target = asset_target(place, _asset(kind, given), **over)
    return NamedTarget(target, name, merges=asset_target.merges and not name.hasOffset, label=label)


def _http_call(url: str, given: Mapping[str, Any], **over: Any) -> HttpCall:
    method = to_choice(given.get("method", METHODS[0]), "method", *METHODS)
    body, taken = _text(given.get("body"), "body"), _statuses(given.get("taken", ()))
    return HttpCall(url, body=body, method=method, taken=taken, **over)


def _asset(kind: str, given: Mapping[str, Any]) -> str:
    if asset := _text(given.get("asset"), "asset"):
        return asset
    raise InvalidOptionError(f"to={kind}: needs asset, the name of the asset in {kind.title()}.", option="asset")


def _kind_and_place(to: Any) -> tuple[str, str]:
    """The kind of a target, and its URL, pattern or function as a text."""
    if callable(to):
        return "function", f"{getattr(to, '__module__', '')}:{getattr(to, '__qualname__', type(to).__qualname__)}"
    kind, colon, place = to.partition(":") if isinstance(to, str) else ("", "", "")
    if kind in ("http", "https") and place.startswith("//"):
        return "http", to
    if place and kind in _kinds():
        return kind, place
    raise _no_target(kind if colon else "")


def _no_target(kind: str) -> InvalidOptionError:
    """The error for a target of no known kind. It shows the kind only, since what follows may hold a secret."""
    given = f"to={short_repr(kind)}:... is no target" if kind else "to needs a kind, a colon and a place"
    near = None if kind in _kinds() else nearest(kind, _kinds())
    urls = ", ".join(f"{kind}:URL" for kind in _kinds()[1:])
    return InvalidOptionError(
        f"{given}.{did_you_mean(near)} Give success-file:PATTERN, {urls}, or a function.", option="to"
    )


def _kinds() -> list[str]:
    """What a target's text may begin with."""
    return ["success-file", "http", *plugin_names(PLUGINS)]


def _require_options(kind: str, given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _OPTIONS.get(kind, _ASSET_OPTIONS):
            all_kinds = {**_OPTIONS, **dict.fromkeys(plugin_names(PLUGINS), _ASSET_OPTIONS)}
            kinds = " and ".join(kind for kind, options in all_kinds.items() if name in options)
            raise InvalidOptionError(f"{name} is an option for {kinds}, not for {kind}. Leave it out.", option=name)


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
    return micros / SECOND_MICROS


def _label(kind: str, place: str) -> str:
    """The kind with a digest of the rest, which may be secret."""
    return f"{kind}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"

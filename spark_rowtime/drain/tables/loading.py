"""One translation of what a table's library raises while it opens or loads: away, damaged, or configured wrongly."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any

from spark_rowtime.errors import InvalidOptionError, RowtimeError, StoreCorruptError, StoreUnavailableError

_WRONG = (ValueError, TypeError, LookupError, AttributeError)
"""What a library raises at bytes, or at settings, that are not what it expects. The errors of JSON and
Unicode are subclasses of ValueError."""
_UNCONFIGURED = (
    *("NoSuchPropertyException", "NotInstalledError", "BadRequestError", "UnauthorizedError", "ForbiddenError"),
    "OAuthError",
)
"""PyIceberg's errors of a catalog that is configured in a wrong way, or whose configuration lacks something."""


_VALUE = re.compile("input_value=.*(?=, input_type=)")
"""Where an error of pydantic's shows the answer of a catalog, which may have credentials for the table's files."""

_COLOR = re.compile("\x1b\\[[0-9;]*m")
"""A change of color, which the library of Delta has in errors of a storage."""


@contextmanager
def loading(target: str, file: object = None) -> Iterator[None]:
    """Around what loads a table, or one ``file`` of it.

    Raises StoreCorruptError if it cannot be read as what it should be, and StoreUnavailableError after all other
    errors: each catalog and each kind of storage has errors of its own. RowtimeErrors stay.
    """
    try:
        yield
    except RowtimeError:
        raise
    except Exception as error:
        kind, is_damage, at = type(error).__name__, _is_damage(error), file or _metadata_file(error)
        error = told(error)
        if not is_damage:
            raise unavailable(target, error) from error
        raise StoreCorruptError(
            f"{f'{at} of {target}' if at else target} cannot be read as what it should be ({kind}: "
            f"{shown(error)}). Somebody else has written there, or it is damaged: restore it, or use another table.",
            path=target,
            **({"file": str(at)} if at else {}),
        ) from error


def opened_catalog(target: str, name: str, load: Callable[[str], Any]) -> Any:
    """Returns the catalog of Iceberg that ``load`` opens.

    Raises InvalidOptionError for one that has no configuration, or a wrong one; StoreUnavailableError after all other
    errors, since the same call may work later. What an error says of the configuration is not shown, nor chained:
    PyIceberg's errors, and those of SQLAlchemy, have parts of it, also of a password.
    """
    try:
        return load(name)
    except RowtimeError:
        raise
    except Exception as error:
        if not isinstance(error, (*_WRONG, ImportError, *_unconfigured())):
            raise unavailable(target, error) from error
        why = f"{type(error).__name__}{f': {error}' if _says_what_lacks(error) else ''}"
    raise InvalidOptionError(
        f"The catalog {name!r} of {target} cannot be opened ({why}). Configure it for PyIceberg, for example with "
        f"PYICEBERG_CATALOG__{name.upper()}__URI; in a URI, a password has @ as %40 and : as %3A.",
        option="target",
        value=target,
    )


def _says_what_lacks(error: Exception) -> bool:
    """Whether an error names only a missing package or setting, and shows no value."""
    lacks = _loaded("pyiceberg.exceptions", "NotInstalledError", "NoSuchPropertyException")
    return isinstance(error, (ImportError, *lacks)) or str(error).startswith("URI missing")


def unavailable(target: str, error: Exception) -> StoreUnavailableError:
    """The error of a table that cannot be reached just now."""
    return StoreUnavailableError(f"{target} cannot be read or written: {shown(error)}", path=target)


def _is_damage(error: Exception) -> bool:
    """Whether bytes were there and are not what was expected. ``deltalake`` has no class of its own for that."""
    if isinstance(error, _loaded("deltalake.exceptions", "DeltaError")):
        return "Json error" in str(error)
    return isinstance(error, (*_WRONG, *_loaded("pyiceberg.exceptions", "ValidationError"))) and not isinstance(
        error, OSError
    )


def _metadata_file(error: Exception) -> str | None:
    """The file that PyIceberg was reading, which its error does not name; None if there was none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        found = getattr(frame.f_locals.get("input_file"), "location", None)
        if isinstance(found, str):
            return found
    return None


def told(error: Exception) -> Exception:
    """The error; in place of one that shows values of an answer, one that does not, so that none is in a traceback."""
    text = _VALUE.sub("input_value=...", str(error))
    return error if text == str(error) else ValueError(text)


def shown(error: Exception) -> str:
    """The lines of an error before the first empty line or stack trace, joined, without colors."""
    lines = map(str.strip, _COLOR.sub("", str(told(error))).splitlines())
    return " ".join(takewhile(lambda line: line and "0: <unknown>" not in line, lines))


def _unconfigured() -> tuple[type[Exception], ...]:
    return _loaded("pyiceberg.exceptions", *_UNCONFIGURED) + _loaded("sqlalchemy.exc", "ArgumentError")


def _loaded(module: str, *names: str) -> tuple[type[Exception], ...]:
    """Classes of a library, none if it is not loaded: then the error is not its."""
    found = sys.modules.get(module)
    return tuple(getattr(found, name) for name in names if hasattr(found, name))

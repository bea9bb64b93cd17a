"""Finds the class that ``module:Class`` names."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_rowtime.adapter.search_path import add_current_folder
from spark_rowtime.errors import InvalidOptionError


def load(spec: str, *, from_here: bool = True) -> type[Any]:
    """Imports the adapter class that ``module:Class`` names. Raises InvalidOptionError if it is not usable."""
    found = load_class(spec, "an adapter", (), from_here=from_here)
    require_adapter(found, spec)
    return found


def require_class(adapter: Any) -> None:
    """Raises InvalidOptionError for an instance of an adapter, or anything else that is no class."""
    if isinstance(adapter, type):
        return
    name = type(adapter).__name__
    raise InvalidOptionError(
        f"An adapter is given as its class, or as 'module:Class', not as an instance of {name}, since each start makes "
        f"a new one. Give {name} itself, and what its constructor takes as arguments={{...}}.",
        adapter=name,
    )


def require_adapter(found: type[Any], spec: str) -> None:
    """Raises InvalidOptionError unless the class has ``schema`` and exactly one of ``run`` and ``runProducers``."""
    forms = [form for form in ("run", "runProducers") if callable(getattr(found, form, None))]
    lacks = ["no schema"] * (not hasattr(found, "schema")) + ["no run"] * (not forms)
    if lacks or len(forms) > 1:
        raise InvalidOptionError(
            f"{spec!r} is not an adapter: the class has {' and '.join(lacks) or 'both run and runProducers'}. It needs "
            "schema, and either run(sink), for one producer, or runProducers(sinks), for several.",
            spec=spec,
        )


def load_class(spec: str, what: str, needed: Sequence[str], *, from_here: bool = True) -> type[Any]:
    """Imports the class that ``module:Class`` names, and checks that it has all ``needed`` attributes.

    ``what`` is the kind of class that error messages name. ``from_here``: modules in the current folder can be
    imported, if there are none of that name elsewhere. Raises InvalidOptionError if the class is not usable.
    """
    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise InvalidOptionError(f"{spec!r} names no class. Write module:Class, such as my_feed:MyFeed.", spec=spec)
    if from_here:
        add_current_folder()
    found = getattr(_import(module, spec), name, None)
    if not isinstance(found, type):
        has = f"a {type(found).__name__}" if found is not None else "nothing"
        raise InvalidOptionError(f"{spec!r} names no class: the module {module} has {has} of that name.", spec=spec)
    missing = [attribute for attribute in needed if not hasattr(found, attribute)]
    if missing:
        raise InvalidOptionError(
            f"{spec!r} is not {what}: the class has no {' and no '.join(missing)}. It needs {' and '.join(needed)}.",
            spec=spec,
            missing=missing,
        )
    return found


def _import(module: str, spec: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise InvalidOptionError(f"{spec!r} cannot be imported: {error}. Install what it needs.") from error
        raise InvalidOptionError(
            f"{spec!r}: there is no module {error.name!r}, neither in {Path.cwd()} nor on Python's path. Start in the "
            "folder of the module, or put that on PYTHONPATH.",
            spec=spec,
        ) from None
    except Exception as error:
        raise InvalidOptionError(
            f"{spec!r} fails at its import: {type(error).__name__}: {error}. Correct the module."
        ) from error

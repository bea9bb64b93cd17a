"""Modules of pip extras, which are imported where they are used."""

from importlib import import_module
from typing import Any

from spark_rowtime.errors import ExtraNotInstalledError


def import_extra(module: str, extra: str, user: str) -> Any:
    """Imports a module that a pip extra installs. ``user``: what needs it.

    Raises:
        ExtraNotInstalledError: The module, or one that it imports, is not there.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ExtraNotInstalledError(
            f"{user} needs {module} ({error}). Install its extra, from an index or the wheel: "
            f"pip install 'spark-rowtime[{extra}]', or 'PATH/TO/THE.whl[{extra}]'.",
            extra=extra,
        ) from error

"""What the driver ships to tasks on other machines, which may not have this package, or have another version of it.

The functions here that a task calls are pickled with their code, not by name, so they run where the package is missing.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark import cloudpickle

Function = TypeVar("Function", bound=Callable[..., Any])

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


class VersionedPickle:
    """An object of which each task gets a copy. Where it is unpickled, the driver's version must be installed."""

    def __reduce__(self) -> tuple[Callable[[str, bytes], Any], tuple[str, bytes]]:
        return _object, (_version(), _dumped((type(self), self.__getstate__())))


def versioned(function: Function) -> Function:
    """Returns the function as one that tasks unpickle where this version is installed."""
    version, content = _version(), _dumped(function)

    def run(*arguments: Any) -> Any:
        return _loaded(version, content)(*arguments)

    return run  # type: ignore[return-value]


def _version() -> str:
    found: str = sys.modules["spark_rowtime"].__version__
    return found


def _dumped(value: object) -> bytes:
    content: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return content


def _object(version: str, content: bytes) -> Any:
    kind, state = _loaded(version, content)
    made = kind.__new__(kind)
    made.__dict__.update(state or {})
    return made


def _loaded(version: str, content: bytes) -> Any:
    """Called in a task. Uses Python's own modules only until the package is known to be there."""
    import importlib  # noqa: PLC0415  (the names of this module are not there)
    import pickle  # noqa: PLC0415
    import socket  # noqa: PLC0415
    import sys  # noqa: PLC0415

    try:
        found = getattr(importlib.import_module("spark_rowtime"), "__version__", None)
    except ImportError:
        found = None
    if found != version:
        there = "is not installed" if found is None else f"is version {found}"
        raise ImportError(
            f"The driver of this query uses spark-rowtime {version}, but on the executor's machine "
            f"{socket.gethostname()} spark-rowtime {there} for {sys.executable}. Install it there: pip install "
            f"spark-rowtime=={version}. Or ship an environment that has it with spark.archives."
        )
    importlib.import_module("spark_rowtime.spark.worker_process").settle()
    return pickle.loads(content)  # noqa: S301  (what the driver of this query has pickled)

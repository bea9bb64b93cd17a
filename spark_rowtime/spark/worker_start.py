"""Starts a program of PySpark's in a worker, as ``python -m`` does, with the installed PySpark instead of its archive.

Spark puts ``python/lib/pyspark.zip`` first into the path of each worker. The archive has sources alone, so each worker,
and each question to a data source, compiles them: half a second of processor time. Where SPARK_HOME is a package that
pip installed, it is what the archive was made of, and keeps what was compiled. Elsewhere the archive is used.
"""

import os
import runpy
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def load_installed(home: str) -> None:
    """Imports PySpark from the folder ``home``, if it is the package."""
    file = Path(home) / "__init__.py"
    spec = spec_from_file_location("pyspark", file, submodule_search_locations=[home])
    if home and file.is_file() and spec is not None and spec.loader is not None:
        module = sys.modules["pyspark"] = module_from_spec(spec)
        spec.loader.exec_module(module)


def start(program: str) -> None:
    """Runs ``program`` with the arguments behind it. The path begins as ``python -m`` would begin it."""
    if not sys.flags.safe_path:
        sys.path[:1] = _here()
    load_installed(os.environ.get("SPARK_HOME", ""))
    runpy.run_module(program, run_name="__main__", alter_sys=True)


def _here() -> list[str]:
    """The folder of the process; none if somebody has removed it."""
    try:
        return [str(Path.cwd())]
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    del sys.argv[0]
    start(sys.argv[0])

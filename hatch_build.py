"""The build hook: compiles the jars, and puts what Spark looks for where Spark looks for it.

Into every wheel and source distribution: a jar for each minor version of Spark (git ignores them, so pyproject.toml
names them for hatchling). An editable install has at least the one for the PySpark that is installed. At the top level
of each wheel: ``pyspark_rowtime.py``, where Spark finds ``format("rowtime")`` by itself.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FINDER = "spark_rowtime/spark/pyspark_rowtime.py"


class RowtimeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling once for each target and version."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before hatchling collects the files."""
        build, is_editable = self._build(), version == "editable"
        if is_editable and build.is_installed():
            build.build_installed()
        else:
            build.build_all()
        if self.target_name == "wheel":
            includes = build_data["force_include_editable" if is_editable else "force_include"]
            includes[str(Path(self.root) / FINDER)] = "pyspark_rowtime.py"

    def _build(self) -> Any:
        script = Path(self.root) / "java-shim" / "build.py"
        spec = importlib.util.spec_from_file_location("rowtime_jar_build", script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

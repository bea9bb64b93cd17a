"""The build hook: compiles the jar, and puts what Spark looks for where Spark looks for it.

Into every wheel: the jar (which git ignores, so hatchling would leave it out) and, at the top level,
``pyspark_rowtime.py``, where Spark finds ``format("rowtime")`` by itself. An editable install gets
the same: the jar in the source tree, the module beside the ``.pth`` file.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR = "spark_rowtime/jars/spark-rowtime.jar"
FINDER = "spark_rowtime/spark/pyspark_rowtime.py"


class RowtimeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling once for each target and version."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before hatchling collects the files."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        self._load(root / "java-shim" / "build.py").build_jar(root / JAR)
        includes = build_data["force_include_editable" if version == "editable" else "force_include"]
        includes[str(root / FINDER)] = "pyspark_rowtime.py"
        if version != "editable":
            includes[str(root / JAR)] = JAR

    def _load(self, script: Path) -> Any:
        spec = importlib.util.spec_from_file_location("rowtime_jar_build", script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

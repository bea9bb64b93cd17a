"""The jars: one for each minor version of Spark, chosen by the PySpark that is there, with the same bytes each time."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyspark
import pytest
from hatchling.builders.wheel import WheelBuilder

import spark_rowtime as rt
from scripts.mavenjars import MissingJarsError
from spark_rowtime.spark.jars import VERSIONS

ROOT = Path(__file__).parents[2]
MINOR = ".".join(pyspark.__version__.split(".")[:2])


def loaded() -> Any:
    """java-shim/build.py, which is no package."""
    spec = spec_from_file_location("rowtime_jar_build", ROOT / "java-shim" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = loaded()


def or_skip(built: Callable[[], Any]) -> Any:
    """What it returns. Where Maven cannot fetch the jars of Spark, the test is skipped, as others are."""
    try:
        return built()
    except build.BuildError as error:
        if isinstance(error.__cause__, MissingJarsError):
            pytest.skip(str(error))
        raise


def manifest(jar: Path) -> dict[str, str]:
    with zipfile.ZipFile(jar) as archive:
        lines = archive.read("META-INF/MANIFEST.MF").decode().splitlines()
    return dict(line.split(": ", 1) for line in lines if line)


def test_the_versions_that_are_built_are_those_that_are_offered() -> None:
    assert tuple(build.COMPILED_WITH) == VERSIONS
    assert all((ROOT / "requirements" / f"spark-{minor}.txt").exists() for minor in VERSIONS)


def test_the_jar_is_that_of_the_installed_pyspark() -> None:
    said = manifest(Path(rt.jarPath()))
    assert said["Spark-Version"] == MINOR
    assert said["Spark-Versions-Tried"] == pyspark.__version__
    assert said["Implementation-Version"] == rt.__version__


@pytest.mark.parametrize("minor", VERSIONS)
def test_a_jar_says_that_it_was_tried_where_the_tests_run(minor: str) -> None:
    """On the PySpark that requirements/ names, and on no other."""
    [tried] = re.findall("^Spark-Versions-Tried: (.*)\r$", build._manifest(minor), re.MULTILINE)
    assert f"\npyspark=={tried} " in (ROOT / "requirements" / f"spark-{minor}.txt").read_text()


def test_a_jar_of_these_sources_is_kept_and_another_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "JARS", tmp_path)
    monkeypatch.setattr(build, "_build", lambda *given: given[-1].write_bytes(b"built"))
    (tmp_path / Path(rt.jarPath()).name).write_bytes(Path(rt.jarPath()).read_bytes())
    assert build.build_installed().read_bytes() != b"built"
    monkeypatch.setattr(build, "_digest", lambda _: "of other sources")
    assert build.build_installed().read_bytes() == b"built"


def test_a_jar_that_is_half_written_is_in_no_wheel(tmp_path: Path) -> None:
    """As a build that was killed leaves it, or one that runs beside this one."""
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    jars = tmp_path / "spark_rowtime" / "jars"
    jars.mkdir(parents=True)
    whole = jars / "spark-rowtime_spark4.3.jar"
    for jar in (whole, whole.with_name(f"{whole.name}.4711")):
        jar.touch()
    wheel = WheelBuilder(str(tmp_path))
    with wheel.config.set_build_data({"artifacts": [], "force_include": {}, "build_hooks": ()}):
        assert [file.path for file in wheel.recurse_included_files()] == [str(whole)]


def test_without_maven_what_needs_it_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWTIME_JARS", str(tmp_path))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(pytest.skip.Exception, match=r"for Spark 4\.2\.0: .* install Maven"):
        or_skip(lambda: build._fetched("4.2.0"))


@pytest.mark.night
@pytest.mark.smoke
@pytest.mark.timeout(600)  # Maven may take half of it
def test_a_jar_has_the_same_bytes_whoever_brings_the_classes(tmp_path: Path) -> None:
    """It was made with the installed PySpark, or with what Maven fetches. One of them is made again here."""
    jars = or_skip(lambda: build._fetched(build.COMPILED_WITH[MINOR]))
    build._build(MINOR, jars, tmp_path / "fetched.jar")
    build._build(MINOR, Path(pyspark.__file__).parent / "jars", tmp_path / "installed.jar")
    assert (tmp_path / "fetched.jar").read_bytes() == (tmp_path / "installed.jar").read_bytes()
    assert (tmp_path / "fetched.jar").read_bytes() == Path(rt.jarPath()).read_bytes()


USES: dict[str, str] = {
    "configure": "import spark_rowtime as rt; rt.configure(None)",
    "jarPath": "import spark_rowtime as rt; rt.jarPath()",
    "punctuate": "import spark_rowtime as rt; rt.punctuate",
    "tableWriter": "import spark_rowtime as rt; rt.tableWriter",
    "operators": "from spark_rowtime.operators import slidingAggregate",
    "testing": "from spark_rowtime.testing import RowtimeTestStream",
    "format": "import pyspark_rowtime",
}


@pytest.fixture
def with_pyspark(tmp_path: Path) -> Callable[[str, str], str]:
    """What a program ends with, where PySpark has this version."""

    def said(version: str, program: str) -> str:
        (tmp_path / "pyspark").mkdir(exist_ok=True)
        (tmp_path / "pyspark" / "__init__.py").write_text(f"__version__ = '{version}'\n")
        path = os.pathsep.join([str(tmp_path), str(ROOT), *sys.path])
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
        )
        return done.stderr.strip().splitlines()[-1]

    return said


@pytest.mark.each
@pytest.mark.parametrize("use", USES)
def test_an_old_pyspark_is_refused_everywhere_by_one_text(with_pyspark: Callable[[str, str], str], use: str) -> None:
    assert with_pyspark("3.5.9", USES[use]) == (
        "spark_rowtime.errors.ShimMissingError: PySpark 3.5 is too old: spark-rowtime is for Spark 4.0, 4.1, 4.2, 4.3."
    )


def test_a_pyspark_without_a_jar_is_refused_with_the_versions_that_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.9.1")
    with pytest.raises(
        rt.ShimMissingError, match=r"no extension for Spark 4\.9: .* for Spark 4\.0, 4\.1, 4\.2, 4\.3\."
    ):
        rt.jarPath()


@pytest.mark.long
def test_the_jar_of_another_version_refuses_the_session(tmp_path: Path) -> None:
    """A JVM of its own, since jars are loaded when it starts."""
    other = next(minor for minor in VERSIONS if minor != MINOR)
    jar = tmp_path / "other.jar"
    with zipfile.ZipFile(rt.jarPath()) as own, zipfile.ZipFile(jar, "w") as changed:
        for name in own.namelist():
            changed.writestr(name, own.read(name).replace(MINOR.encode(), other.encode()))
    program = (
        "from pyspark.sql import SparkSession\n"
        f"builder = SparkSession.builder.master('local[1]').config('spark.jars', '{jar}')\n"
        "builder.config('spark.sql.extensions', 'sparkrowtime.RowtimeExtensions').getOrCreate().range(1).count()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode
    assert f"ShimMismatchError: this jar of spark-rowtime is for Spark {other}, and this is Spark" in done.stderr

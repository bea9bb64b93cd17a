"""The three programs of the README, with the wheel, outside of this checkout: under each version of Spark that
docs/versions.md names, with Pythons and Javas that it names. One query goes on from version to version.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from spark_rowtime.spark.jars import VERSIONS
from tests.documents.blocks import FENCED
from tests.packaging.conftest import one
from tests.packaging.environments import Environment, add_platform, environment, with_java
from tests.packaging.test_jars import ROOT
from tests.sparksession import wait_for

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
IS_ASKED = "ROWTIME_PROGRAMS" in os.environ
asked = pytest.mark.skipif(not IS_ASKED, reason="a minute each: ROWTIME_PROGRAMS=1")
CHAIN = (*VERSIONS, *reversed(VERSIONS[1:-1])) if IS_ASKED else VERSIONS[:1]
"""The Sparks under which one query runs, in this order: each, and back; or the oldest alone."""
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "versions.md").read_text()
START_SECONDS = 240
REFUSED_JAVA = "25"
"""The Java that only the Sparks have for which the page names it."""
REFUSAL = "getSubject is not supported"


def named(kind: str, minor: str) -> list[str]:
    """The versions of Python or Java that the page names for a version of Spark."""
    [row] = re.findall(rf"^\| {kind} \|(.*)\|$", PAGE, re.MULTILINE)
    return str(row.split("|")[VERSIONS.index(minor)]).replace(" ", "").split(",")


def program(name: str, hour: int = 9) -> str:
    """The code of one of the README's three programs, with the times of another hour."""
    match = FENCED.search(README, README.index(f"**{name}**"))
    assert match is not None
    return match[2].replace("T10:", f"T{hour + 1:02}:").replace("T09:", f"T{hour:02}:")


def printed(hour: int = 9) -> str:
    """What the README says that the consumer prints."""
    match = re.search(r"^```text\n(10:00: .*)\n```$", README, re.MULTILINE)
    assert match is not None
    return match[1].replace("10:", f"{hour + 1:02}:")


def on_platform(wheel: Path, folder: Path, spark: str, python: str) -> Environment:
    """An environment with an installed PySpark, which the wheel without an extra leaves as it is."""
    made = environment(folder, python)
    version = add_platform(made, spark)
    made.install(str(wheel))
    assert pyspark_of(made) == version
    return made


def pyspark_of(made: Environment) -> str:
    return made.said("python", "-c", "import pyspark; print(pyspark.__version__)")


@pytest.fixture(scope="module")
def platforms(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Environment]]:
    """One with each Spark, and the newest Python that the page names for it."""
    folder = tmp_path_factory.mktemp("platforms")
    wheel = one(dist, "*.whl")
    yield {spark: on_platform(wheel, folder / spark, spark, named("Python", spark)[-1]) for spark in sorted(set(CHAIN))}
    shutil.rmtree(folder)


@pytest.mark.night
def test_the_readme_runs_under_each_spark_and_the_query_goes_on_under_the_next(
    platforms: dict[str, Environment], tmp_path: Path
) -> None:
    """Each with the newest Java that the page names."""
    made = {spark: with_java(platforms[spark], named("Java", spark)[-1]) for spark in set(CHAIN)}
    for number, spark in enumerate(CHAIN):
        run_programs(made[spark], tmp_path, 9 + number)


@pytest.mark.parametrize("spark", [spark for spark in sorted(set(CHAIN)) if REFUSED_JAVA not in named("Java", spark)])
def test_a_java_that_the_page_does_not_name(platforms: dict[str, Environment], tmp_path: Path, spark: str) -> None:
    made = with_java(platforms[spark], REFUSED_JAVA)
    (tmp_path / "pipeline.py").write_text(program("pipeline.py"))
    with started(made, tmp_path, "pipeline") as pipeline:
        assert pipeline.wait(START_SECONDS) != 0
    assert REFUSAL in said(tmp_path, "pipeline")


@asked
@pytest.mark.parametrize("versions", [f"{spark} {python}" for spark in VERSIONS for python in named("Python", spark)])
def test_the_readme_runs_with_each_python_and_java(dist: Path, tmp_path: Path, versions: str) -> None:
    """One query, which goes on with the next Java."""
    spark, python = versions.split()
    made = on_platform(one(dist, "*.whl"), tmp_path / "venv", spark, python)
    for number, java in enumerate(named("Java", spark)):
        run_programs(with_java(made, java), tmp_path, 9 + number)
    shutil.rmtree(made.folder)


@asked
@pytest.mark.parametrize("spark", VERSIONS)
def test_the_readme_runs_where_the_wheel_brings_spark(dist: Path, tmp_path: Path, spark: str) -> None:
    """The newest, or the one that is asked for."""
    made = environment(tmp_path / "venv", named("Python", spark)[0])
    made.install(f"{one(dist, '*.whl')}[spark]", *([] if spark == VERSIONS[-1] else [f"pyspark=={spark}.*"]))
    assert pyspark_of(made).startswith(f"{spark}.")
    run_programs(with_java(made, named("Java", spark)[0]), tmp_path)
    shutil.rmtree(made.folder)


def run_programs(made: Environment, work: Path, hour: int = 9) -> None:
    """Feed, pipeline and consumer, each a process; the consumer prints what the README says, for this hour too."""
    (work / "feed.py").write_text(program("feed.py", hour))
    for name in ("pipeline.py", "consumer.py"):
        (work / name).write_text(program(name))
    subprocess.run([made.program("python"), "feed.py"], cwd=work, env=made.variables, check=True)
    with ExitStack() as stack:
        pipeline = stack.enter_context(started(made, work, "pipeline"))
        stack.enter_context(started(made, work, "consumer"))
        line = printed(hour)
        wait_for(lambda: pipeline.poll() is not None or line in said(work, "consumer"), line, timeout=START_SECONDS)
        assert pipeline.poll() is None, said(work, "pipeline")
    assert [line[:5] for line in said(work, "consumer").splitlines()] == [f"{end}:00" for end in range(10, hour + 2)]


@contextmanager
def started(made: Environment, work: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of the programs, until the end of the block; what it says is in a file of its name."""
    with (work / f"{name}.log").open("wb") as log:
        command = [made.program("python"), "-u", f"{name}.py"]
        process = subprocess.Popen(command, cwd=work, env=made.variables, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def said(work: Path, name: str) -> str:
    return (work / f"{name}.log").read_text()

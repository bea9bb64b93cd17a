"""What requirements/ pins is what pyproject.toml asks for; scripts/renew-requirements.sh makes it again."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from spark_rowtime.spark.jars import VERSIONS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = {name: [*map(Requirement, asked)] for name, asked in PROJECT["project"]["optional-dependencies"].items()}
PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)


def pinned(name: str) -> dict[str, list[str]]:
    """The versions of each package in a file; there may be several, for different Pythons."""
    found: dict[str, list[str]] = {}
    for package, version in PIN.findall((ROOT / "requirements" / f"{name}.txt").read_text()):
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


def asked() -> list[Requirement]:
    """What the extra dev needs directly, with the extras that it names."""
    extras = {extra for one in EXTRAS["dev"] if one.name == "spark-rowtime" for extra in one.extras}
    direct = [*map(Requirement, PROJECT["project"]["dependencies"]), *EXTRAS["dev"]]
    both = direct + [one for extra in extras for one in EXTRAS[extra]]
    return [one for one in both if one.name not in ("spark-rowtime", "pyspark")]


@pytest.mark.parametrize("requirement", asked(), ids=lambda one: one.name)
def test_a_dependency_is_pinned_within_its_range(requirement: Requirement) -> None:
    versions = pinned("dev").get(canonicalize_name(requirement.name))
    assert versions, f"{requirement} is in no file of requirements/: run scripts/renew-requirements.sh"
    assert all(requirement.specifier.contains(version) for version in versions)


@pytest.mark.parametrize("minor", VERSIONS)
def test_each_pyspark_is_within_the_range(minor: str) -> None:
    [spark] = [one for one in EXTRAS["spark"] if one.name == "pyspark"]
    [pin] = pinned(f"spark-{minor}")["pyspark"]
    assert pin.startswith(f"{minor}.")
    assert spark.specifier.contains(pin)
    assert f">={VERSIONS[0]}" in str(spark.specifier).split(",")


def test_every_pin_has_a_hash() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        text = file.read_text()
        assert PIN.findall(text)
        assert all("--hash=sha256:" in part for part in re.split(PIN, text)[3::3]), file

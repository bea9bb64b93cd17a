"""The packages of the extension use each other one way."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

JAVA = Path(__file__).resolve().parents[2] / "java-shim" / "src" / "main" / "java" / "sparkrowtime"


def used(package: Path) -> set[str]:
    """The other packages that the code of a package names. A comment may name any."""
    code = "".join(re.sub(r"/\*.*?\*/|//.*", "", file.read_text(), flags=re.DOTALL) for file in package.glob("*.java"))
    return set(re.findall(r"\bsparkrowtime\.([a-z]+)\.", code)) - {package.name}


def test_packages_have_no_cycle() -> None:
    uses = {package.name: used(package) for package in JAVA.iterdir() if package.is_dir()}
    order = list(TopologicalSorter(uses).static_order())  # raises CycleError
    assert order.index("support") < order.index("python") < order.index("bounds") < order.index("query")

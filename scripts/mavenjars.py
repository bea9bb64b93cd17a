"""Jars that tests and the build need, fetched once with Maven and kept outside of the tree.

ROWTIME_JARS names another folder than ~/.cache/spark-rowtime/jars. What is there already is not fetched. A jar that is
fetched has the checksum of scripts/jars.sha256, or is not used. After a change of versions:

    ROWTIME_JARS=new-folder python -m scripts.mavenjars >>scripts/jars.sha256

prints the lines of all jars of that folder, for jars that the tests have fetched with ROWTIME_NEW_JARS=1.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CHECKSUMS = Path(__file__).with_name("jars.sha256")
FETCH_SECONDS = 300.0
"""How long Maven may take for one set of jars."""
NO_MAVEN = "{name} is not in {folder}, and there is no mvn to fetch it: install Maven, for example Debian's maven"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>{parent}<groupId>rowtime'
    "</groupId><artifactId>jars</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>"
)
_DEPENDENCY = (
    "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    "<exclusions>{exclusions}</exclusions></dependency>"
)
_PARENT = "<parent><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><relativePath/></parent>"
_EXCLUSION = "<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>"


class MissingJarsError(Exception):
    """Why there are no jars. The tests that need them are skipped with this reason."""


class WrongJarError(Exception):
    """A jar that is not the one for which the tests were written. It is no reason to skip them."""


def dependency(group: str, artifact: str, version: str, without: tuple[str, ...] = ()) -> str:
    """A dependency in Maven's XML, without what it needs of the groups ``without``."""
    exclusions = "".join(_EXCLUSION.format(group=name) for name in without)
    return _DEPENDENCY.format(group=group, artifact=artifact, version=version, exclusions=exclusions)


def kept(name: str) -> Path:
    """The folder of these jars, which need not be there yet."""
    return Path(os.environ.get("ROWTIME_JARS") or Path.home() / ".cache" / "spark-rowtime" / "jars") / name


def fetched(name: str, dependencies: str, parent: tuple[str, str, str] | None = None) -> Path:
    """The folder of these jars. One process fetches at a time; a folder that is there is whole.

    ``parent`` is group, artifact and version of the project whose properties the dependencies use.
    """
    root = kept(name).parent
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (root / name).is_dir():
            inherited = _PARENT.format(*parent) if parent else ""
            _fetch(root, name, _PROJECT.format(parent=inherited, dependencies=dependencies))
    return root / name


def _fetch(root: Path, name: str, pom: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingJarsError(NO_MAVEN.format(name=name, folder=root))
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        project, jars = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        project.write_text(pom)
        command = [maven, "-q", "-B", "-ntp", "-f", project, _PLUGIN, f"-DoutputDirectory={jars}"]
        _run([str(part) for part in [*command, "-DincludeScope=runtime"]], name)
        if "ROWTIME_NEW_JARS" not in os.environ:
            check(jars, name)
        jars.rename(root / name)


def check(jars: Path, name: str) -> None:
    """Compares the jars of a folder with the lines for ``name`` in the file of checksums."""
    known = dict(reversed(line.split()) for line in CHECKSUMS.read_text().splitlines())
    found = dict(reversed(line.split()) for line in checksums(jars, name))
    if not any(path.startswith(f"{name}/") for path in known):
        raise MissingJarsError(f"{CHECKSUMS.name} has no checksums for {name}; see scripts/mavenjars.py")
    wrong = sorted(path for path, digest in found.items() if known.get(path) != digest)
    if wrong:
        raise WrongJarError(f"Maven has fetched other jars than {CHECKSUMS.name} has: {', '.join(wrong)}")


def checksums(jars: Path, name: str) -> list[str]:
    """The lines for a folder of jars, as sha256sum writes them."""
    return [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {name}/{jar.name}" for jar in sorted(jars.glob("*.jar"))]


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise MissingJarsError(f"Maven has not fetched {name} within {FETCH_SECONDS:.0f} s") from error
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr[-500:])
        raise MissingJarsError(f"Maven cannot fetch {name}: {said}")


if __name__ == "__main__":
    for folder in sorted(place for place in kept("x").parent.iterdir() if place.is_dir()):
        print("\n".join(checksums(folder, folder.name)))

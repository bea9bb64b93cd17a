"""Checks the models of this folder with Alloy, and prints a table of what each promise needs.

    python -m model.check [FILE...]

The commands of a model have names. ``check PROMISE`` must find no counterexample, ``run PROMISE_without_RULE`` must
find one, since the promise needs the rule, and ``run PROMISE_occurs`` must find a life in which the promise matters.
Exit code 1: one of these is not so.

A command asks for lives of just so many states (``9..9 steps``). Such a life ends in a loop, and one of fewer states
becomes one of more where the loop begins a state later; so it finds what it would find among all lives up to that
length, in half of the time.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from scripts.mavenjars import dependency, fetched

FOLDER = Path(__file__).parent
VERSION = "6.2.0"
SECONDS = 1200.0
"""How long one model may take."""
_ALLOY = dependency("org.alloytools", "org.alloytools.alloy.dist", VERSION, without=("*",))
_NAME = re.compile(r"(?P<promise>[^_]+)(?:_(?:(?P<occurs>occurs)|without_(?P<rule>\w+)))?")


class Result(NamedTuple):
    """What Alloy said of a command: whether there is a life such as it asks for, of at most so many states."""

    name: str
    found: bool
    states: int


class Line(NamedTuple):
    """A promise: whether it holds, which rules break it if they do not hold, and whether what it is about occurs."""

    promise: str
    states: int
    holds: bool
    broken_without: dict[str, bool]
    occurs: bool

    @property
    def is_right(self) -> bool:
        """Whether the promise holds, and says something."""
        return self.holds and self.occurs and bool(self.broken_without) and all(self.broken_without.values())

    def __str__(self) -> str:
        rules = ", ".join(f"{rule}{'' if broken else ' (NOT NEEDED)'}" for rule, broken in self.broken_without.items())
        words = re.sub(r"(?<!^)(?=[A-Z])", " ", self.promise).capitalize()
        outcome = "holds" if self.holds else "BROKEN"
        return f"| {words} | {outcome} | {self.states} | {rules or 'NONE'} | {'yes' if self.occurs else 'NEVER'} |"


def results(model: Path) -> list[Result]:
    """Runs all commands of a model."""
    [jar] = fetched(f"alloy-{VERSION}", _ALLOY).glob("*.jar")
    with tempfile.TemporaryDirectory() as folder:
        where = ["-f", "-q", "-c", "*", "-s", "glucose", "-t", "none", "-o", folder, str(model)]
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", str(jar), "exec", *where]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        commands = json.loads((Path(folder) / "receipt.json").read_text())["commands"]
    return [Result(name, "solution" in said, said["maxprefix"]) for name, said in commands.items()]


def lines(found: list[Result]) -> Iterator[Line]:
    """A line for each promise that has a ``check``."""
    named = [(_NAME.fullmatch(result.name), result) for result in found]
    for promise, checked in ((match["promise"], r) for match, r in named if match and match["promise"] == r.name):
        own = [(match, r) for match, r in named if match and match["promise"] == promise and r.name != promise]
        without = {match["rule"]: r.found for match, r in own if match["rule"]}
        occurs = any(r.found for match, r in own if match["occurs"])
        yield Line(promise, checked.states, not checked.found, without, occurs)


def main(*names: str) -> int:
    """Returns the exit code."""
    print("| promise | in the model | states | broken without the rule | occurs |", "|---|---|---|---|---|", sep="\n")
    right = True
    for model in [FOLDER / name for name in names] or sorted(FOLDER.glob("*.als")):
        for line in lines(results(model)):
            print(line, flush=True)
            right &= line.is_right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

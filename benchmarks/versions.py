"""From a bound to the window's row in a sink, on one Spark against another: time and processor time of a window.

    python benchmarks/versions.py [VERSION] [BASELINE]          4.1 and 4.3, unless others are named

The query is that of bound_to_result.py, as ``rt.configure`` sets it up. Each turn is a process of its own, and the two
take turns, each first in every second turn. The processor time is that of all processes of the query.
"""

import json
import statistics
import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
TURNS = 4
COLD, ROUNDS = 15, 12
"""Windows of a turn: the JVM compiles during the first ones, which do not count."""


def cpu_ms() -> float:
    """Processor time of this process and of all that it has started, in milliseconds."""
    here = psutil.Process()
    times = [process.cpu_times() for process in [here, *here.children(recursive=True)]]
    return 1000 * sum(spent.user + spent.system for spent in times)


def turn() -> None:
    """In a process with the PySpark that is measured: prints the milliseconds and the processor time of each window."""
    from bound_to_result import Lane  # noqa: PLC0415  (it imports PySpark)

    from harness import folder, session  # noqa: PLC0415

    with folder() as root:
        lane = Lane(session(), root, "ours", by_bound=True)
        with lane.running() as query:
            for _ in range(COLD):
                lane.round(query)
            before = cpu_ms()
            took = [lane.round(query) for _ in range(ROUNDS)]
            print(json.dumps({"took": took, "cpu": (cpu_ms() - before) / ROUNDS}))
        lane.close()


def measured(version: str) -> dict[str, list[float] | float]:
    """One turn with this version."""
    is_here = installed("pyspark").startswith(f"{version}.")
    script = [] if is_here else [str(ROOT / "scripts" / "on-spark.sh"), version]
    done = subprocess.run([*script, sys.executable, __file__, "turn"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, list[float] | float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(version: str = "4.1", baseline: str = "4.3") -> None:
    turns: dict[str, list[dict[str, list[float] | float]]] = {version: [], baseline: []}
    for number in range(TURNS):
        for one in (version, baseline) if number % 2 else (baseline, version):
            turns[one].append(measured(one))
    for what, key in (("from the bound to the result", "took"), ("processor time of a window", "cpu")):
        mine, theirs = (statistics.median(values(turns[one], key)) for one in (version, baseline))
        print(f"{what}, Spark {version}: {mine:,.0f} ms; Spark {baseline}: {theirs:,.0f} ms; ratio {mine / theirs:.2f}")


def values(turns: list[dict[str, list[float] | float]], key: str) -> list[float]:
    """All values of the turns under this key."""
    found = [turn[key] for turn in turns]
    return [value for one in found for value in (one if isinstance(one, list) else [one])]


if __name__ == "__main__":
    turn() if sys.argv[1:] == ["turn"] else main(*sys.argv[1:])

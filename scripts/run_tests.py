"""Runs the jobs of `make test` or `make test-long`, four at a time; prints a line for each, and one for all.

    .venv/bin/python scripts/run_tests.py {test,long} [JOB...]

What a job says is in build/logs. Of a job that fails the failures are printed, and where the rest is.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 4
"""The jobs are made for two cores. Each waits for half of its time: for a process to start, for a file, for a time."""
TESTS = {
    "store": ["store/test_[!op]*.py"],
    "postgres": ["store/test_[op]*.py"],
    "quick": [],
    "kafka": ["kafka", "cluster"],
    "streams": ["conformance", "golden", "hostile", "law7", "testing", "test_examples.py", "spark/test_o*.py"],
    "spark": ["spark/test_[!os]*.py"],
    "crash": ["crash", "load", "documents"],
    "shim": ["spark/test_s*.py"],
}
"""The tests of each job: those that need no Spark, while its classes are gathered, then the longest job first. Folders
that no job names are in the job ``quick``."""
CLASSES = ".venv/spark-classes.jsa"
"""What jobs with Spark wait for, and what makes it."""
WITHOUT_SPARK = ("store", "postgres", "quick")
SELECTED = {"test": "not long", "long": "long or search"}
SMALL = {
    "ROWTIME_FLIPS": "60", "ROWTIME_HOSTILE_EXAMPLES": "8", "ROWTIME_COPIES": "8", "ROWTIME_ORACLE_LIVES": "15",
    "ROWTIME_MODEL_LIVES": "12",
}  # fmt: skip
"""How much the tests with the mark ``search`` try in `make test`."""
SPARKS = {"4.2": "0:4", "4.1": "10:14", "4.0": "20:24"}
"""The other minor versions of Spark, on which `make test-long` runs the smoke tests, and these seeds of law 7. GitHub's
matrix tries ten on each."""
SMOKE = "pytest.mark.smoke"
OLDEST = "4.0"
OF_DELTA = "4.2"
"""The newest Spark for which Delta Lake has a jar. The session with it is that of a process of its own."""
OF_DELTA_BEFORE = "4.0"
"""The oldest one. A small part of the tests runs on it: a chain of tables, late rows, batches that run again."""
_FEW = ("-m", "not long", "-k", "chain or kept_once or runs_again")
OF_ICEBERG = {"4.1": (), "4.0": ("-k", "chain or kept_once or runs_again or rolled_back")}
"""The Sparks for which Iceberg has a jar, and which tests run: all on the newest one, a small part on the other."""
ICEBERG = "tests/lakehouse/test_iceberg*.py"
HANGING_SECONDS = "300"
NO_TESTS = 5
"""Pytest's exit code where nothing was selected."""
CLOSING = re.compile(r"^=* ?(\d+ \w+.* in [\d.]+s[^=\n]*?) ?=*$", re.MULTILINE)
FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$.*", re.MULTILINE | re.DOTALL)
LAST_CHARACTERS = 5000


class Job:
    """A command, with a log of its own."""

    def __init__(self, kind: str, name: str, command: list[str], **environment: str) -> None:
        self.name, self._command, self._environment = name, command, environment
        self.log = ROOT / "build" / "logs" / kind / f"{name}.log"
        self.code, self._seconds = 0, 0.0

    def run(self, before: "Future[Job] | None" = None) -> "Job":
        """Runs it, once the one ``before`` it has ended, and prints its line."""
        if before:
            before.result()
        start = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **self._environment}
        with self.log.open("wb") as log:
            done = subprocess.run(self._command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
        self.code, self._seconds = 0 if done.returncode == NO_TESTS else done.returncode, time.monotonic() - start
        print(f"{self.name:13} {self.closing() or self._outcome()}", flush=True)
        return self

    def closing(self) -> str:
        """The line with which pytest has ended; empty if there is none."""
        return str(["", *CLOSING.findall(self._said())][-1]) if "pytest" in self._command else ""

    def count(self, *words: str) -> int:
        """How many tests the closing line has under these words."""
        return sum(int(number) for number, word in re.findall(r"(\d+) (\w+)", self.closing()) if word in words)

    def failures(self) -> str:
        """What it says of its failures, or its last words; then where all is."""
        found = FAILURES.search(self._said())
        said = found[0] if found else self._said()[-LAST_CHARACTERS:]
        return f"\n{said}\n{self.name} is red; all that it said is in {self.log.relative_to(ROOT)}"

    def _outcome(self) -> str:
        return f"{f'ended with exit code {self.code}' if self.code else 'done'} in {clock(self._seconds)}"

    def _said(self) -> str:
        return self.log.read_text(errors="replace")


def files(job: str) -> list[str]:
    """The tests of a job, as arguments of pytest."""
    tests = ROOT / "tests"
    named = TESTS[job] or [place.name for place in tests.iterdir() if place.is_dir() and not _has_job(place.name)]
    return sorted(str(path.relative_to(ROOT)) for name in named for path in tests.glob(name) if _has_tests(path))


def jobs(kind: str) -> list[Job]:
    """The jobs of TESTS: in `make test` after what makes the classes; in `make test-long` with PySparks and lint."""
    tests = [_job(kind, name) for name in TESTS]
    if kind == "long":
        others = [_smoke(version) for version in SPARKS]
        delta = [_delta(OF_DELTA), _delta(OF_DELTA_BEFORE, *_FEW)]
        iceberg = [_iceberg(version, *selected) for version, selected in OF_ICEBERG.items()]
        return [*tests, *others, *delta, *iceberg, _made(kind, "lint"), _made(kind, "docs")]
    return [_made(kind, CLASSES), *tests]


def main(kind: str, *names: str) -> int:
    """Returns the exit code."""
    os.environ.update({"PYTEST_TIMEOUT": HANGING_SECONDS, **(SMALL if kind == "test" else {})})
    print(f"four jobs at a time; what they say is in build/logs/{kind}", flush=True)
    start, running = time.monotonic(), dict[str, Future[Job]]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for job in jobs(kind):
            if not names or job.name in names:
                before = running.get(Path(CLASSES).stem) if job.name not in WITHOUT_SPARK else None
                running[job.name] = pool.submit(job.run, before)
    done = [job.result() for job in running.values()]
    red = [job for job in done if job.code]
    print(*(job.failures() for job in red), sep="\n", end="\n" if red else "")
    names_of_red = " and ".join(job.name for job in red) or "none"
    print(f"{_total(done)}, {names_of_red} red, {clock(time.monotonic() - start)} minutes")
    return bool(red)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _made(kind: str, target: str) -> Job:
    return Job(kind, Path(target).stem, ["make", "--no-print-directory", target])


def _job(kind: str, name: str) -> Job:
    command = [sys.executable, "-m", "pytest", "-m", SELECTED[kind], "--durations=20", *files(name)]
    return Job(kind, name, command, **_faster(), **({"TMPDIR": _memory()} if kind == "test" else {}))


def _faster() -> dict[str, str]:
    """Variables with which Python processes start faster, and seldom look for garbage: see tests/startup.

    One thread for linear algebra, which nobody needs and each of them starts. The smoke tests on the oldest PySpark run
    without these variables, as a user's programs do. In `make test` files are in memory, too, where there is room:
    a disk's syncs take much of the time.
    """
    startup = [str(ROOT / "tests" / "startup"), *filter(None, [os.environ.get("PYTHONPATH")])]
    run = str(os.getpid())
    return {"ROWTIME_TEST_RUN": run, "PYTHONPATH": os.pathsep.join(startup), "OPENBLAS_NUM_THREADS": "1"}


def _smoke(version: str) -> Job:
    """PySpark before 4.2 leaves its sockets to the garbage collector, so their warnings are no errors."""
    pytest = [sys.executable, "-m", "pytest", "-W", "ignore::ResourceWarning", "-m", "smoke", "--durations=20"]
    faster = {} if version == OLDEST else _faster()
    law7 = {"ROWTIME_LAW7_SEEDS": SPARKS[version], "ROWTIME_LAW7_SHORT": "1"}
    command = ["scripts/on-spark.sh", version, *pytest, *_smoke_tests()]
    return Job("long", f"spark-{version}", command, **law7, **faster)


def _smoke_tests() -> list[str]:
    """The files with such tests, since pytest takes ten seconds to look through all; those of law 7 in a warm JVM."""
    tests = (ROOT / "tests").rglob("test_*.py")
    return sorted((str(path.relative_to(ROOT)) for path in tests if SMOKE in path.read_text()), reverse=True)


def _delta(version: str, *selected: str) -> Job:
    return _lakehouse(version, "delta", "tests/lakehouse", f"--ignore-glob={ICEBERG}", *selected)


def _iceberg(version: str, *selected: str) -> Job:
    tests = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(ICEBERG))
    return _lakehouse(version, "iceberg", *tests, *selected)


def _lakehouse(version: str, kind: str, *tests: str) -> Job:
    pytest = [sys.executable, "-m", "pytest", "-W", "ignore::ResourceWarning", "--durations=20"]
    return Job("long", f"{kind}-{version}", ["scripts/on-spark.sh", version, *pytest, *tests], **_faster())


def _total(jobs: list[Job]) -> str:
    run = sum(job.count("passed", "failed", "error", "errors") for job in jobs)
    return f"{len(jobs)} jobs, {run} tests, {sum(job.count('skipped') for job in jobs)} skipped"


def _memory() -> str:
    done = subprocess.run([ROOT / "scripts" / "memory-folder.sh"], capture_output=True, text=True, check=True)
    return os.environ.get("TMPDIR") or done.stdout.strip()


def _has_job(folder: str) -> bool:
    return any(name.partition("/")[0] == folder for names in TESTS.values() for name in names)


def _has_tests(path: Path) -> bool:
    return path.is_file() or any(path.glob("test_*.py"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

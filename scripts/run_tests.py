"""Runs the jobs of `make test`, `test-long` or `test-night`, four at a time; prints a line for each, and one for all.

    .venv/bin/python scripts/run_tests.py {test,long,night} [JOB...]

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
    "kafka": ["kafka"],
    "streams": ["conformance", "golden", "hostile", "law7", "testing", "test_examples.py", "spark/test_o*.py"],
    "spark": ["spark/test_[!os]*.py"],
    "crash": ["crash", "load", "documents"],
    "shim": ["spark/test_s*.py"],
    "cluster": ["cluster"],
}
"""The tests of each job: those that need no Spark, while its classes are gathered, then the longest job first. Folders
that no job names are in the job ``quick``."""
ONLY_LONG = ("cluster",)
"""The jobs that `make test` has not. Their networks are no others': see tests/cluster/machines.py."""
CLASSES = ".venv/spark-classes.jsa"
"""What jobs with Spark wait for, and what makes it."""
WITHOUT_SPARK = ("store", "postgres", "quick")
SELECTED = {"test": "not long and not night", "long": "(long or search) and not night", "night": "night"}
SMALL = {
    "ROWTIME_FLIPS": "60", "ROWTIME_HOSTILE_EXAMPLES": "8", "ROWTIME_COPIES": "8", "ROWTIME_ORACLE_LIVES": "15",
    "ROWTIME_MODEL_LIVES": "12",
}  # fmt: skip
"""How much the tests with the mark ``search`` try in `make test`."""
SPARKS = {"4.2": "0:4", "4.1": "10:14", "4.0": "20:24"}
"""The other minor versions of Spark, on which `make test-night` runs the smoke tests, with these seeds of law 7.
GitHub's matrix tries ten on each."""
OLDEST = "4.0"
OF_EXTENSION = "test_shim_*.py"
"""Of which files `make test-long` runs the smoke tests on these Sparks. Beside them it has all tests of tables on two,
and the README's programs on the oldest."""
LONGEST = ("kafka", "spark", "delta-4.2", "quick", "shim", "streams", "crash", "iceberg-4.1")
"""The jobs of `make test-long` that begin first, so that all end at the same time."""
TABLES = {"delta": "4.2", "iceberg": "4.1"}
"""The formats of tables, each with the newest Spark for which it has a jar. Its session is one of a process of its own.
`make test-long` has all tests on it, but those with the mark ``night``."""
ICEBERG = "tests/lakehouse/test_iceberg*.py"
OF_TABLES = {
    "delta": ("tests/lakehouse", f"--ignore-glob={ICEBERG}"),
    "iceberg": tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(ICEBERG))),
}
FEW_OF_TABLES = ("not long and not night", "-k", "chain or kept_once or runs_again or rolled_back")
"""What `make test-night` runs with tables on the oldest Spark."""
PROGRAMS = "tests/packaging/test_programs.py"
"""`make test-night` runs them with each Spark, Python and Java."""
ASKED = {"ROWTIME_KILLS": "4", "ROWTIME_S3A": "1", "ROWTIME_EXHAUSTIVE": "1"}
"""The variables without which some tests are skipped, and what `make test-night` gives them."""
ASKS = re.compile(r'skipif\("(ROWTIME_\w+)" not in os\.environ')
HANGING_SECONDS = "600"
NO_TESTS = 5
"""Pytest's exit code where nothing was selected."""
CLOSING = re.compile(r"^=* ?(\d+ \w+.* in [\d.]+s[^=\n]*?) ?=*$", re.MULTILINE)
FAILURES = re.compile(r"^=+ (?:FAILURES|ERRORS) =+$.*?(?=^=+ slowest|\Z)", re.MULTILINE | re.DOTALL)
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
        """What it says of its failures alone, or its last words; then where all is."""
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
    """Of `make test`, `make test-long` or `make test-night`."""
    return {"test": _of_test, "long": _of_long, "night": _of_night}[kind]()


def _of_test() -> list[Job]:
    """The jobs of TESTS, after what makes the classes."""
    return [_made("test", CLASSES), *(_job("test", name) for name in TESTS if name not in ONLY_LONG)]


def _of_long() -> list[Job]:
    """The jobs of TESTS, with PySparks, tables, lint and the site."""
    others = [_smoke("long", version, OF_EXTENSION) for version in SPARKS]
    tables = [_tables("long", name, version, "not night") for name, version in TABLES.items()]
    made = [*(_job("long", name) for name in TESTS), *others, *tables, _made("long", "lint"), _made("long", "docs")]
    return sorted(made, key=lambda job: LONGEST.index(job.name) if job.name in LONGEST else len(LONGEST))


def _of_night() -> list[Job]:
    """The jobs of TESTS, and what `make test-long` runs on some Sparks, Pythons and Javas alone."""
    tests = [_job("night", name) for name in TESTS]
    programs = Job("night", "programs", [*_pytest("long"), PROGRAMS], ROWTIME_PROGRAMS="1", **_faster())
    asked = Job("night", "asked", [*_pytest("not night"), *asking()], **ASKED, **_faster())
    sparks = [_smoke("night", version) for version in SPARKS]
    newest = [_tables("night", name, version, "night") for name, version in TABLES.items()]
    oldest = [_tables("night", name, OLDEST, *FEW_OF_TABLES) for name in TABLES]
    return [programs, asked, *tests, *sparks, *newest, *oldest]


def asking() -> list[str]:
    """The files with tests that run where a variable asks for them."""
    return _files_with(ASKS)


def main(kind: str, *names: str) -> int:
    """Returns the exit code."""
    os.environ.update({"PYTEST_TIMEOUT": HANGING_SECONDS, **(SMALL if kind == "test" else {})})
    print(f"{AT_ONCE} jobs at a time; what they say is in build/logs/{kind}", flush=True)
    start, running, all_jobs = time.monotonic(), dict[str, Future[Job]](), jobs(kind)
    if unknown := set(names) - {job.name for job in all_jobs}:
        print(f"no job {', '.join(sorted(unknown))}; there are {', '.join(job.name for job in all_jobs)}")
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for job in all_jobs:
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
    command = [*_pytest(SELECTED[kind]), *files(name)]
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


def _smoke(kind: str, version: str, *where: str) -> Job:
    faster = {} if version == OLDEST else _faster()
    law7 = {"ROWTIME_LAW7_SEEDS": SPARKS[version], "ROWTIME_LAW7_SHORT": "1"}
    return Job(kind, f"spark-{version}", [*_on(version, "smoke"), *_smoke_files(*where)], **law7, **faster)


def _smoke_files(where: str = "test_*.py") -> list[str]:
    """The files with smoke tests, since pytest takes ten seconds to look through all; those of law 7 in a warm JVM."""
    marked = _files_with(re.compile(r"pytest\.mark\.smoke"), where)
    return [name for name in reversed(marked) if not name.startswith("tests/lakehouse/")]


def _files_with(text: re.Pattern[str], where: str = "test_*.py") -> list[str]:
    paths = (ROOT / "tests").rglob(where)
    return sorted(str(path.relative_to(ROOT)) for path in paths if text.search(path.read_text()))


def _tables(kind: str, name: str, version: str, *selected: str) -> Job:
    return Job(kind, f"{name}-{version}", [*_on(version, *selected), *OF_TABLES[name]], **_faster())


def _on(version: str, marks: str, *more: str) -> list[str]:
    """PySpark before 4.2 leaves its sockets to the garbage collector, so their warnings are no errors."""
    return ["scripts/on-spark.sh", version, *_pytest(marks, *more), "-W", "ignore::ResourceWarning"]


def _pytest(marks: str, *more: str) -> list[str]:
    """Why a test was skipped is in the log."""
    return [sys.executable, "-m", "pytest", "-m", marks, "--durations=20", "-rfEs", *more]


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

"""What `make test` prints: a line for each job as pytest ends it, one for all, and the failures alone."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_rowtime.spark.jars import VERSIONS

ROOT = Path(__file__).parents[2]
GREEN = "import pytest\ndef test_a(): print('noise')\n@pytest.mark.skip\ndef test_b(): pass\n"
LAW7 = {"ROWTIME_LAW7_SEEDS", "ROWTIME_LAW7_SHORT"}
RED = "def test_c():\n    assert 1 == 2, 'told'\ndef test_d(missing): pass\ndef test_e(): print('noise')\n"


class Runner:
    """The script, with other jobs and a folder of its own for their logs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._names = folder, runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
        self._names["main"].__globals__.update(ROOT=folder, jobs=lambda _: self.jobs)
        self.jobs: list[Any] = []
        self.budgets = self._names["SMALL"]

    def add(self, name: str, tests: str, *arguments: str) -> None:
        """A job with one file of tests, in a process with pytest's own settings."""
        (self.folder / f"test_{name}.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py", *arguments]
        self.jobs.append(self._names["Job"]("test", name, command))

    def add_command(self, name: str, program: str) -> None:
        self.jobs.append(self._names["Job"]("test", name, [sys.executable, "-c", program]))

    def main(self, *names: str) -> int:
        return int(self._names["main"]("test", *names))


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    made = Runner(tmp_path)
    for name in ("PYTEST_TIMEOUT", *made.budgets):
        monkeypatch.setenv(name, "1")  # main sets them; they are put back
    return made


def test_green_jobs_are_a_line_each(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.add("one", GREEN)
    runner.add("nothing", GREEN, "-m", "no_such_mark")
    runner.add_command("lint", "print('noise')")
    assert runner.main() == 0
    first, *lines = capsys.readouterr().out.splitlines()
    lines.sort()
    assert first == "4 jobs at a time; what they say is in build/logs/test"
    assert [line.split()[0] for line in lines] == ["3", "lint", "nothing", "one"]
    assert lines[0].startswith("3 jobs, 1 tests, 1 skipped, none red, ")
    assert lines[3].startswith("one           1 passed, 1 skipped in ")


def test_of_a_red_job_the_failures_are_printed_and_where_the_rest_is(
    runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    runner.add("bad", RED, "--durations=3", "-rfEs")
    runner.add("one", GREEN)
    runner.add_command("gone", "import os; print('last words', flush=True); os._exit(9)")
    assert runner.main() == 1
    said = capsys.readouterr().out
    assert "bad           1 failed, 1 passed, 1 error in " in said
    assert "AssertionError: told" in said
    assert "fixture 'missing' not found" in said
    assert "bad is red; all that it said is in build/logs/test/bad.log" in said
    assert "gone          ended with exit code 9 in " in said
    assert "last words\n\ngone is red" in said
    assert "noise" not in said
    assert "slowest" not in said
    assert said.splitlines()[-1].startswith("3 jobs, 4 tests, 1 skipped, bad and gone red, ")


def test_a_job_with_spark_waits_for_the_classes_and_others_do_not(runner: Runner) -> None:
    """The job without Spark ends first here, or never."""
    runner.add_command("spark-classes", "import os\nwhile not os.path.exists('store'): pass\nopen('classes', 'w')")
    runner.add_command("spark", "open('classes')")
    runner.add_command("store", "open('store', 'w')")
    assert runner.main() == 0


def test_a_job_by_its_name(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.add("bad", RED)
    runner.add_command("lint", "print('noise')")
    assert runner.main("lint") == 0
    assert "bad" not in capsys.readouterr().out


def test_a_name_of_no_job_is_red(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.add_command("lint", "print('noise')")
    assert runner.main("lnt") == 2
    assert capsys.readouterr().out.splitlines()[-1] == "no job lnt; there are lint"


def test_every_variable_that_a_test_asks_for_is_given_in_make_test_night() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    asked = {name for file in script["asking"]() for name in script["ASKS"].findall((ROOT / file).read_text())}
    assert asked == script["ASKED"].keys()
    [job] = [job for job in script["jobs"]("night") if job.name == "asked"]
    assert job._environment.items() >= script["ASKED"].items()
    assert set(script["asking"]()) <= set(job._command)


def test_only_make_test_has_its_files_in_memory_and_the_oldest_pyspark_runs_as_a_users_programs_do() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    short, long = (script["_job"](kind, "quick")._environment for kind in ("test", "long"))
    assert short.keys() - long.keys() == {"TMPDIR"}
    assert long.keys() >= {"PYTHONPATH"}
    assert [script["_smoke"]("night", version)._environment.keys() - LAW7 for version in script["SPARKS"]] == [
        *[long.keys()] * 2,
        set(),
    ]


def test_each_other_spark_has_other_seeds_of_law_7() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    seeds = [
        script["_smoke"]("night", version)._environment["ROWTIME_LAW7_SEEDS"].split(":") for version in script["SPARKS"]
    ]
    assert [(int(first), int(last)) for first, last in seeds] == [(0, 4), (10, 14), (20, 24)]


def test_each_other_spark_has_the_extension_in_make_test_long_and_all_smoke_tests_in_make_test_night() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    files = [
        {job.name: sum(word.startswith("tests/") for word in job._command) for job in script["jobs"](kind)}
        for kind in ("long", "night")
    ]
    [few], [all_] = ({found[f"spark-{version}"] for version in script["SPARKS"]} for found in files)
    assert 5 < few < all_


def test_the_cluster_is_not_in_make_test() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    kinds = [kind for kind in ("test", "long", "night") if "cluster" in {job.name for job in script["jobs"](kind)}]
    assert kinds == ["long", "night"]


def test_make_test_has_the_newest_spark_and_make_test_long_all_others() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "run_tests.py"))
    newest = re.search("^NEWEST := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert newest
    assert (*script["SPARKS"], newest[1]) == (*reversed(VERSIONS[:-1]), VERSIONS[-1])
    assert {f"spark-{version}.txt" for version in VERSIONS} | {"dev.txt"} == {
        file.name for file in (ROOT / "requirements").iterdir()
    }

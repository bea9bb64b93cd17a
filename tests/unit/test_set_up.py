"""Somebody who lacks what the project needs is told so in one line, by the scripts that `make` runs first."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "env", "id", "sed", "head", "awk", "grep", "tail", "dirname", "mkdir", "cat", "df")
JAVA_8 = 'echo "openjdk version \\"1.8.0_402\\"" >&2'
JAVA_17 = 'echo "Picked up JAVA_TOOL_OPTIONS: -Da=8" >&2; echo "openjdk version \\"17.0.15\\" 2025-04-15" >&2'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder for PATH with the shell's tools, and nothing else."""
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path / "bin"


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
    (folder / name).chmod(0o755)


def run(script: str, path: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """The exit code, and what it says."""
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHON")}
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / script), *arguments],
        env={**kept, "PATH": str(path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).strip()


def test_without_java(path: Path) -> None:
    code, said = run("need-jdk.sh", path)
    assert code == 1
    assert said.startswith("spark-rowtime needs a JDK 17 or later. sudo apt-get install")
    assert "\n" not in said


def test_java_8_is_named(path: Path) -> None:
    program(path, "javac", "echo javac 1.8.0_402")
    program(path, "java", JAVA_8)
    code, said = run("need-jdk.sh", path)
    assert (code, said.count("\n")) == (1, 0)
    assert "There is javac 8." in said


def test_a_java_home_with_another_java_is_named(path: Path, tmp_path: Path) -> None:
    """Spark starts the one of JAVA_HOME, whatever the PATH has."""
    program(path, "javac", "echo javac 17.0.15")
    program(path, "java", JAVA_17)
    assert run("need-jdk.sh", path) == (0, "")
    program(tmp_path / "old" / "bin", "java", JAVA_8)
    code, said = run("need-jdk.sh", path, JAVA_HOME=str(tmp_path / "old"))
    assert (code, said.count("\n")) == (1, 0)
    assert f"{tmp_path}/old/bin/java is 8, by JAVA_HOME." in said
    code, said = run("need-jdk.sh", path, JAVA_HOME=str(tmp_path / "gone"))
    assert f"{tmp_path}/gone/bin/java is not there, or does not start, by JAVA_HOME." in said


def test_a_runtime_without_a_compiler_is_named(path: Path) -> None:
    program(path, "java", JAVA_17)
    code, said = run("need-jdk.sh", path)
    assert (code, said.count("\n")) == (1, 0)
    assert "JDK 17 or later. There is java 17, but no javac. sudo" in said


def test_an_old_python_is_named(path: Path) -> None:
    program(path, "python3", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    code, said = run("need-python.sh", path)
    assert (code, said.count("\n")) == (1, 0)
    assert f"{path}/python3 is Python 3.9. Install a later one" in said


def test_a_later_python_beside_an_old_one_is_taken(path: Path) -> None:
    program(path, "python3", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    program(path, "python3.12", 'case "$2" in *print*) echo 3.12 ;; esac')
    assert run("need-python.sh", path) == (0, "python3.12")


def test_no_python_and_one_without_venv(path: Path) -> None:
    assert run("need-python.sh", path) == (1, "spark-rowtime needs Python 3.11 or later. There is no python3.")
    program(path, "python3", 'case "$2" in *print*) echo 3.11 ;; *venv*) exit 1 ;; esac')
    code, said = run("need-python.sh", path)
    assert (code, said.count("\n")) == (1, 0)
    assert f"{path}/python3 has no module venv: sudo apt-get install python3.11-venv" in said


@pytest.mark.parametrize(
    ("pip", "told"),
    [
        ("OSError: [Errno 28] No space left on device", "There is no space left for"),
        ("NewConnectionError: Failed to establish a new connection", "pip cannot reach the package index"),
        ("ProxyError('Cannot connect to proxy.')", "Behind a proxy, set HTTPS_PROXY"),
        ("No matching distribution; CERTIFICATE_VERIFY_FAILED", "of its own, set PIP_CERT to their file"),
        ("No matching distribution; ReadTimeoutError", "pip cannot reach the package index"),
        ("No matching distribution found for pyarrow", "has no file of a package that requirements/ names for this"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "other files than requirements/ was made with"),
    ],
)
def test_pips_errors_in_one_line(path: Path, tmp_path: Path, pip: str, told: str) -> None:
    """What it prints itself is in the log that is named."""
    copy = _copy_of_the_scripts(tmp_path)
    program(path, "javac", "echo javac 17.0.15")
    program(path, "java", JAVA_17)
    program(path, "python3", "echo 3.12")
    program(copy / "venv" / "bin", "python", f'echo "{pip}"; exit 1')
    code, said = run(str(copy / "scripts" / "set-up.sh"), path, "venv", "newest")
    lines = said.splitlines()
    assert (code, len(lines)) == (1, 2), said
    assert lines[0].startswith("setting up venv: PySpark is 450 MB")
    assert told in lines[1]
    assert pip in (copy / "build" / "logs" / "set-up-newest.log").read_text()


def test_too_little_space_is_told_before_anything_is_fetched(path: Path, tmp_path: Path) -> None:
    copy = _copy_of_the_scripts(tmp_path)
    program(path, "javac", "echo javac 17.0.15")
    program(path, "java", JAVA_17)
    program(path, "python3", "echo 3.12")
    (path / "df").unlink()
    program(path, "df", "echo Filesystem; echo /dev/x 9000 8500 500 95% /")
    code, said = run(str(copy / "scripts" / "set-up.sh"), path, "venv", "newest")
    assert (code, said) == (1, f"spark-rowtime needs 3000 MB for venv, and {copy} has 500 MB free.")


def _copy_of_the_scripts(folder: Path) -> Path:
    copy = folder / "project"
    shutil.copytree(ROOT / "scripts", copy / "scripts")
    return copy

"""Another PySpark is installed once, whoever asks for it at the same time: smoke tests and a test in another job do."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = f"""#!{sys.executable}
import os, sys, time
from pathlib import Path

if "--target" in sys.argv:
    with Path("installed").open("a") as log:
        log.write("once\\n")
    end = time.monotonic() + 1
    while time.monotonic() < end and len(Path("installed").read_text().split()) < 2:
        time.sleep(0.02)
    Path(sys.argv[sys.argv.index("--target") + 1]).mkdir(parents=True)
elif sys.argv[1] == "-c":
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""It stands for the Python of .venv: its pip waits for a second one that installs at the same time."""


def test_a_pyspark_that_two_ask_for_at_once_is_installed_once(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "spark-4.0.txt").write_text("pyspark==4.0.5\n")
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "on-spark.sh", tmp_path / "scripts")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [script, "4.0", "printenv", "PYTHONPATH"]
    both = [subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folder = tmp_path / ".venv" / "sparks" / "4.0"
    assert [(one.communicate()[0], one.returncode) for one in both] == [(f"{folder}\n", 0)] * 2
    assert (tmp_path / "installed").read_text() == "once\n"
    assert (folder / "pins.txt").read_text() == "pyspark==4.0.5\n"

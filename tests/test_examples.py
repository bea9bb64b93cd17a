"""The examples run as they stand, each in a process of its own, and find what they are to show."""

import csv
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def output_of(example: str, *arguments: str) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


def test_01_hourly_counts() -> None:
    hours = re.findall(r"^(\d\d:00) +(\d+) .*?(\d) of (\d) hours$", output_of("01_hourly_counts.py"), re.MULTILINE)
    assert [(hour, int(orders)) for hour, orders, *_ in hours] == [(f"{end}:00", 6) for end in range(10, 14)]
    assert all(int(plain) < int(of) for *_, plain, of in hours), "plain Spark has not closed the last hour"


def test_02_earthquakes(quakes: Path) -> None:
    with quakes.open() as lines:
        networks = [row["net"] for row in csv.DictReader(lines)]
    said = output_of("02_earthquakes.py", str(quakes))
    assert f"{len(networks)} earthquakes of {len(set(networks))} networks, 0 rejected" in said
    assert "as the batch over the CSV: True" in said

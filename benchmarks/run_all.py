"""All benchmarks, each in a process of its own; then the tables of README.md and docs/performance.md.

`python benchmarks/run_all.py` runs all; with names (`growth send_rate`), only these: the other figures
stay as they were in last.jsonl. `--table` runs none.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tables import growth, kept, phases, settings, table

from harness import RESULTS

HERE = Path(__file__).parent
LAST = HERE / "last.jsonl"
README, PERFORMANCE = HERE / "README.md", HERE.parent / "docs" / "performance.md"
PROGRAMS = (
    "bound_to_result",
    "settings",
    "source_throughput",
    "nexmark",
    "send_rate",
    "reader_latency",
    "drain_rate",
    "kafka_out",
    "kafka_in",
    "kafka_watch",
    "kafka_topic_bounds",
    "growth",
    "page",
    "sliding",
    "asof",
    "postgres_commits",
    "postgres_reads",
    "postgres_growth",
    "postgres_snapshot",
    "objects_throughput",
)


def measure(programs: list[str]) -> None:
    """Runs them; what they measure takes the place of what was measured before under the same name."""
    new = LAST.with_suffix(".new")
    new.unlink(missing_ok=True)
    for name in programs:
        print(f"--- {name}", flush=True)
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True, env={**os.environ, RESULTS: str(new)})
    merged = {**kept(LAST), **kept(new)}
    LAST.write_text("".join(json.dumps(result) + "\n" for result in merged.values()), encoding="utf-8")
    new.unlink(missing_ok=True)


def publish(file: Path, name: str, text: str) -> None:
    """Into the file, between the two marks of that name."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = file.read_text(encoding="utf-8").partition(start)
    after = rest.partition(end)[2]
    file.write_text(f"{before}{start}{text}{end}{after}", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if arguments != ["--table"]:
        measure(arguments or list(PROGRAMS))
    results = kept(LAST)
    where = {f"{result['date']}: {result['machine']}." for result in results.values()}
    text = "\n".join([*sorted(where), "", table(results)])
    publish(README, "figures", text)
    for name, made in (("settings", settings), ("phases", phases), ("growth", growth)):
        publish(PERFORMANCE, name, made(results))
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])

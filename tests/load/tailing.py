"""A reader of a stream in a process of its own: python -m tests.load.tailing PATH ORDER STATE.

It checks that each producer's rows come each once, in their order, and keeps its position and what it
has seen in the file STATE: killed at any point and started again it goes on from there. Ends when its
input does.
"""

import json
import select
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import spark_rowtime as rt
from tests.patience import wait_long_for_locks

LOOK = 0.2
"""Seconds that it waits for a train before it looks whether its input has ended."""


def run(path: str, order: str, file: Path) -> None:
    """Reads until the input ends."""
    state: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"start": "earliest", "seen": {}}
    seen, problems = Counter(state["seen"]), list(state.get("problems", []))
    with rt.openReader(path, order=order, start=state["start"]) as reader:
        while not select.select([sys.stdin], [], [], 0)[0]:
            train = reader.read(timeout=LOOK)
            if train is None:
                continue
            for producer, n in zip(train.rows["producer"].to_pylist(), train.rows["n"].to_pylist(), strict=True):
                if n != seen[producer]:
                    problems.append(f"{producer}: {n} instead of {seen[producer]}")
                seen[producer] = n + 1
            keep(file, {"start": reader.position, "seen": seen, "problems": problems[:9]})


def keep(file: Path, state: dict[str, Any]) -> None:
    """All of it or nothing."""
    new = file.with_suffix(".new")
    new.write_text(json.dumps(state))
    new.replace(file)


if __name__ == "__main__":
    wait_long_for_locks()
    run(sys.argv[1], sys.argv[2], Path(sys.argv[3]))

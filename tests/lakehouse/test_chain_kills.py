"""kill -9 of the driver of a chain of three queries: each row and each window once, and no bound before its rows.

One kill in CI; ``ROWTIME_KILLS=50`` has so many.
"""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spark_rowtime.types.timestamps import to_micros
from tests.crash.drivers import ROOT
from tests.crash.victims import how_many
from tests.lakehouse.chain import TABLES, Chain
from tests.lakehouse.orders import Orders
from tests.sparksession import wait_for
from tests.streams import clock_of

ROUNDS = 4


def clock(minutes: int) -> str:
    return clock_of(datetime(2006, 9, 11, 8) + timedelta(minutes=minutes))


def driver(folder: Path, *how: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.lakehouse.chain", str(folder), *how]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)


def killed(chain: Chain, folder: Path, dice: random.Random) -> None:
    """Kills a driver a few batches of one of its queries later."""
    at = folder / chain.checkpoint(dice.choice(TABLES)).name
    what = dice.choice(["offsets", "commits"])

    def done() -> int:
        return sum(file.name.isdigit() for file in (at / what).glob("*"))

    wanted, process = done() + dice.randint(1, 3), driver(folder)
    try:
        wait_for(lambda: done() >= wanted or process.poll() is not None, f"batches of {at.name}", 240)
        assert process.poll() is None, (folder / "driver.log").read_text()[-5000:]
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def checked(table: Path, column: str) -> list[dict[str, Any]]:
    """The rows of a table, none of which is below the bound of a commit before its own."""
    rows: list[dict[str, Any]] = []
    bound = 0
    for file in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        added = [pq.read_table(table / a["add"]["path"]).to_pylist() for a in actions if "add" in a]
        new = [row for some in added for row in some]
        assert all(to_micros(row[column]) >= bound for row in new), (file, bound, new)
        rows += new
        [info] = [a["commitInfo"] for a in actions if "commitInfo" in a]
        said = json.loads(info.get("userMetadata", "{}")).get("rowtime.bound")
        bound = bound if said is None else to_micros(said)
    assert bound > 0
    return rows


@pytest.mark.long
def test_each_row_and_each_window_is_there_once(spark: Any, tmp_path: Path) -> None:
    dice, orders, sent = random.Random(int(os.environ.get("ROWTIME_SEED", "1"))), Orders(spark, tmp_path), []
    chain = Chain(spark, tmp_path)
    for number in range(how_many(1) + 1):
        for step in range(number * ROUNDS, (number + 1) * ROUNDS):
            rows = [(clock(step * 10 + dice.randint(0, 9)), dice.choice(["a", "b", "noise"])) for _ in range(5)]
            orders.put(*rows, bound=clock(step * 10 + 10))
            sent += [row for row in rows if row[1] != "noise"]
        if number < how_many(1):
            killed(chain, tmp_path, dice)
    orders.put(bound=clock(600))
    assert driver(tmp_path, "end").wait(300) == 0, (tmp_path / "driver.log").read_text()[-5000:]
    silver = [(clock_of(row["at"]), row["k"]) for row in checked(tmp_path / "silver", "at")]
    assert Counter(silver) == Counter(sent)
    gold = checked(tmp_path / "gold", "end")
    assert len({(row["end"], row["k"]) for row in gold}) == len(gold)
    assert sum(row["count"] for row in gold) == len(sent)
    day = checked(tmp_path / "day", "end")
    assert len({row["end"] for row in day}) == len(day)
    assert sum(row["count"] for row in day) == len(sent)

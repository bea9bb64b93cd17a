"""Adapters and a consumer as their authors would write them; tests host them by name."""

import json
import threading
from pathlib import Path
from typing import Any

from spark_rowtime.cli import host as cli_host

MINUTES = 5


class Minutes:
    """Five rows, a minute apart; resumes after the last that it had flushed."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def run(self, sink: Any) -> None:
        for n in range(int(sink.checkpoint or 0), MINUTES):
            sink.sendRow({"rowtime": f"2006-09-11T10:0{n}:00Z", "n": n})
            sink.flush(checkpoint=str(n + 1))
        sink.sendRowtimeBound("2006-09-11T11:00:00Z")


class Endless(Minutes):
    """Goes on waiting for more after the first row. On a busy machine it may take long to end in order."""

    def run(self, sink: Any) -> None:
        cli_host._GRACE_SECONDS = 120
        sink.sendRow({"rowtime": "2006-09-11T10:00:00Z", "n": 0})
        sink.flush()
        threading.Event().wait()


class Threaded(Minutes):
    """Starts a thread that does not end."""

    def run(self, sink: Any) -> None:
        cli_host._GRACE_SECONDS = 0.5
        threading.Thread(target=threading.Event().wait).start()
        sink.sendRow({"rowtime": "2006-09-11T10:00:00Z", "n": 0})
        sink.flush()
        threading.Event().wait()


class Unready(Minutes):
    """Cannot even start."""

    def __init__(self) -> None:
        print("looking for the feed")
        raise ConnectionError("no feed at port 0")


class NoFeed:
    """No adapter: it does not run."""

    schema = "rowtime TIMESTAMP NOT NULL"


class Notebook:
    """A consumer: writes what it gets into notebook.jsonl, and resumes from there."""

    file = Path("notebook.jsonl")

    def __init__(self) -> None:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.checkpoint: str | None = json.loads(lines[-1])["checkpoint"] if lines else None
        self._said: dict[str, Any] = {}

    def sendRows(self, rows: Any) -> None:
        self._said["n"] = rows.column("n").to_pylist()

    def sendRowtimeBound(self, t: Any, strict: bool = False) -> None:
        self._said["bound"] = f"{'after' if strict else 'from'} {t:%H:%M:%S}"

    def flush(self, checkpoint: str | None = None) -> None:
        with self.file.open("a") as notes:
            notes.write(json.dumps({**self._said, "checkpoint": checkpoint}) + "\n")
        self._said = {}


class Demanding(Notebook):
    """A consumer that cannot be made without an argument."""

    def __init__(self, file: Path) -> None:
        self.file = file


class TwoShops:
    """Two producers, each with three rows, a minute apart, and a checkpoint after each row."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def runProducers(self, sinks: Any) -> None:
        shops = [sinks.open("Berlin"), sinks.open("Oslo")]
        for shop in shops:
            shop.flush(checkpoint=shop.checkpoint or "0")
        for n in range(min(int(shop.checkpoint) for shop in shops), 3):
            for number, shop in enumerate(shops):
                if int(shop.checkpoint or 0) == n and shop.producer in sinks.producers:
                    self.run_one(shop, number * 100)

    def run_one(self, shop: Any, first: int) -> None:
        n = int(shop.checkpoint)
        shop.sendRow((f"2006-09-11T10:0{n}:00Z", first + n))
        shop.flush(checkpoint=str(n + 1))
        self.sent(shop.producer, n)

    def sent(self, shop: str, n: int) -> None:
        """For tests."""


class Configured:
    """Takes arguments: sends the first number, and the length of the password."""

    schema = "rowtime TIMESTAMP NOT NULL, n BIGINT"

    def __init__(self, password: str = "", first: int = 0, wait: bool = False) -> None:
        self.numbers, self.wait = (first, len(password)), wait

    def run(self, sink: Any) -> None:
        for n in self.numbers:
            sink.sendRow(("2006-09-11T10:00:00Z", n))
        sink.flush()
        if self.wait:
            threading.Event().wait()

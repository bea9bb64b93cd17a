"""An adapter in a user's file passes mypy --strict, and a wrong one does not."""

import subprocess
import sys
from pathlib import Path

import pytest

import spark_rowtime

FILE = """
from collections.abc import Iterator
from typing import ClassVar

import spark_rowtime as rt


class Ticks:
    schema = "rowtime TIMESTAMP NOT NULL, ticker STRING"
    sinkOptions = {"lateness": "1 minute"}

    def __init__(self, ticker: str, first: int = 0) -> None:
        self.ticker, self.first = ticker, first

    def run(self, sink: rt.RowSink) -> None:
        for n in range(int(sink.checkpoint or self.first), 3):
            sink.sendRow((f"2026-01-05T14:30:0{n}Z", self.ticker))
            sink.flush(checkpoint=str(n))
        bound: rt.RowtimeBound | None = sink.getRowtimeBound()
        sink.sendRowtimeBound(bound, strict=False)


class Shops:
    schema: ClassVar[str] = "rowtime TIMESTAMP NOT NULL, units INT"

    def runProducers(self, sinks: rt.Sinks) -> None:
        for sink in [sinks.open(name, lateness="1 hour") for name in self.names()]:
            sink.sendRow({"rowtime": "2026-01-05T14:30:00Z", "units": 1})

    def names(self) -> Iterator[str]:
        yield from ("Berlin", "Oslo")


one: type[rt.Adapter] = Ticks
several: type[rt.MultiAdapter] = Shops
rt.runAdapter(Ticks, "ticks.rowtime", arguments={"ticker": "IBM"}, create=True)
rt.runAdapter(Shops, "shops.rowtime", lease="1 minute")
with rt.openSink("ticks.rowtime", producer="ticks") as sink:
    Ticks("IBM").run(sink)
with rt.openSinks("shops.rowtime") as sinks:
    Shops().runProducers(sinks)
"""
WRONG = {
    "sink.sendRow((f": "sink.sendRowz((f",
    "def run(self, sink: rt.RowSink)": "def run(self, sink: int)",
    "sinks: rt.Sinks": "sinks: list[str]",
    "type[rt.MultiAdapter] = Shops": "type[rt.MultiAdapter] = Ticks",
}
ROOT = Path(spark_rowtime.__file__).parent.parent
OPTIONS = ("-m", "mypy", "--strict", "--no-error-summary")
"""With the project's settings, in its folder: what `make lint` has found of the library is not looked for again."""


def mypy(folder: Path, *sources: str) -> list[str]:
    """The errors of each file."""
    pytest.importorskip("mypy")
    files = [folder / f"feed{number}.py" for number in range(len(sources))]
    for file, source in zip(files, sources, strict=True):
        file.write_text(source)
    command = [sys.executable, *OPTIONS, *map(str, files)]
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert not found.stderr
    lines = [line for line in found.stdout.splitlines() if ": error: " in line]
    return ["\n".join(line for line in lines if file.name in line.partition(": ")[0]) for file in files]


@pytest.mark.long
def test_an_adapter_passes_mypy_strict_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    right, *wrong = mypy(tmp_path, FILE, *[FILE.replace(a, b, 1) for a, b in WRONG.items()])
    assert right == ""
    assert dict(zip(WRONG, wrong, strict=True)).keys() == {key for key, said in zip(WRONG, wrong, strict=True) if said}

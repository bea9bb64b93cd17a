"""From a bound to a result that a reader of committed results sees, beside Flink with an exactly-once sink.

The same counts per minute in the same run, in turns; while one runs, the other one stands still. Ours: a bound in a
stream, two partitions, the row in a sink's stream. Flink, as SQL over files: a row beyond the window, in a file that is
renamed into the source's folder, which is looked at each millisecond; the row in a file that its committer renames
at the next checkpoint, seen by who looks each millisecond. Its parallelism is one: a second reader, without files,
would hold the watermark back. State is on the heap, checkpoints are on this disk, JVM operators, no Python.

The rows of a minute are there a while before its end is said, in both.

It needs `pip install 'spark-rowtime[bench-flink]'`, 330 MB, and a JDK.
"""

import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from bound_to_result import COLD, START, WARM, Lane, in_turns
from tables import COMMITTED, FLINK

from harness import folder, report, session

PROGRAM = Path(__file__).parent / "flink" / "Statements.java"
SETTINGS = {
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "pipeline.auto-watermark-interval": "1 ms",
    "parallelism.default": "1",
    "heartbeat.timeout": "1 h",  # it is stopped while the other one runs
    "rest.port": "0",
}
STATEMENTS = """
CREATE TABLE rows_ (ts TIMESTAMP(3), n INT, WATERMARK FOR ts AS ts) WITH (
    'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{0}/in', 'source.monitor-interval' = '1 ms');
CREATE TABLE counts (ts TIMESTAMP(3), n BIGINT) WITH (
    'connector' = 'filesystem', 'format' = 'csv', 'path' = 'file://{0}/out',
    'sink.rolling-policy.rollover-interval' = '1 ms', 'sink.rolling-policy.check-interval' = '1 ms');
INSERT INTO counts SELECT window_end, COUNT(*)
    FROM TABLE(TUMBLE(TABLE rows_, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end"""
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "net", "time", "util")]
SECONDS_TO_SEE = 0.3
"""How long the rows of a minute are there before its end is said."""


class FlinkLane:
    """The query in a Flink of its own, with a checkpoint each ``every``. See Lane."""

    def __init__(self, root: Path, every: str) -> None:
        self.folder, self.minute, self.files = root / f"flink {every}".replace(" ", "-"), 0, 0
        for name in ("in", "out", "checkpoints"):
            (self.folder / name).mkdir(parents=True)
        self.took: list[float] = []
        self.phases: list[dict[str, int]] = []
        self._known = set[Path]()
        self._log = (self.folder / "log").open("wb")
        self._process = subprocess.Popen(self._command(every), stdout=self._log, stderr=self._log)

    def _command(self, every: str) -> list[str]:
        spec = find_spec("pyflink")
        if spec is None or not spec.submodule_search_locations:
            sys.exit("There is no Flink here: pip install 'spark-rowtime[bench-flink]'")
        place = {"execution.checkpointing.dir": f"file://{self.folder}/checkpoints"}
        settings = {**SETTINGS, **place, "execution.checkpointing.interval": every}
        said = "\n".join(f"{name}={value}" for name, value in settings.items())
        program = [
            "java",
            *OPENED,
            f"-Dsettings={said}",
            "-cp",
            f"{spec.submodule_search_locations[0]}/lib/*",
            str(PROGRAM),
        ]
        return [*program, *STATEMENTS.format(self.folder).split(";")]

    def turn(self, rounds: int) -> None:
        """So many rounds, and the first few to warm up."""
        self._process.send_signal(signal.SIGCONT)
        self.took += [self._round() for _ in range(WARM + rounds)][WARM:]
        self._process.send_signal(signal.SIGSTOP)

    def _round(self) -> float:
        """Ten rows of a minute; then the time from a row beyond it to its result, in ms."""
        base = START + timedelta(minutes=self.minute)
        end = base + timedelta(minutes=1)
        self.minute += 2
        self._send(*((base + timedelta(seconds=s), s) for s in range(10)))
        time.sleep(SECONDS_TO_SEE)
        start = time.perf_counter()
        self._send((end + timedelta(milliseconds=1), -1))
        while not self._has_seen(f"{end:%Y-%m-%d %H:%M:%S}"):
            assert self._process.poll() is None, (self.folder / "log").read_text()[-5000:]
            assert time.perf_counter() - start < 60, "no result within a minute"
            time.sleep(0.001)
        return 1000 * (time.perf_counter() - start)

    def _send(self, *rows: tuple[object, int]) -> None:
        """A file, which appears as a whole."""
        self.files += 1
        file = self.folder / f"{self.files:06}.csv"
        file.write_text("".join(f"{at:%Y-%m-%d %H:%M:%S.%f},{n}\n" for at, n in rows))
        file.rename(self.folder / "in" / file.name)

    def _has_seen(self, time_of_window: str) -> bool:
        """Whether a file that has appeared since the last look has it. Those with a dot are not committed."""
        files = {file for file in (self.folder / "out").iterdir() if not file.name.startswith((".", "_"))}
        new, self._known = files - self._known, files
        return any(time_of_window in file.read_text() for file in new)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


def main(rounds: int = 60) -> None:
    with folder() as root, ExitStack() as stack:
        flinks = {every: stack.enter_context(FlinkLane(root, every)) for every in FLINK}
        spark = session()
        ours = Lane(spark, root, "bound", by_bound=True)
        in_turns([ours, *flinks.values()], rounds, COLD)
        for every, lane in flinks.items():
            report(COMMITTED, ours.took, lane.took, "ms", FLINK[every])
        ours.close()
        spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

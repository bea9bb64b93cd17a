"""What processes of the tests of forks do: each writes rows, and notes what was acknowledged."""

import os
import traceback
from collections.abc import Callable
from pathlib import Path

import spark_rowtime as rt

DDL = "rowtime TIMESTAMP NOT NULL, name STRING"
ROWS = 60


def pour(path: str, notes: str, producer: str, rows: int = ROWS, begun: Callable[[], object] = lambda: None) -> int:
    """Opens a sink of its own, and flushes each row; ``begun`` is called after the first."""
    with rt.openSink(path, producer=producer) as sink:
        for n in range(rows):
            send(sink, notes, f"{producer}-{n}", n)
            if not n:
                begun()
    return rows


def send(sink: rt.StreamSink, notes: str, name: str, second: int = 0) -> None:
    """Sends one row; once it is acknowledged, notes that."""
    sink.sendRow((f"2026-01-05T14:{second // 60:02d}:{second % 60:02d}Z", name))
    sink.flush()
    with Path(notes).open("a") as file:
        file.write(f"{name}\n")


def forked(work: Callable[[], object]) -> int:
    """Runs ``work`` in a forked child, and returns its pid. The child's exit code is 0 if it raises nothing."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(1)


def ended(*pids: int) -> list[int]:
    """Waits for children, and returns their exit codes."""
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]

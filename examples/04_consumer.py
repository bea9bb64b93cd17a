"""A consumer class: an alert when an hour is complete, exactly once, also over a restart.

A consumer is any object with `sendRows` and `sendRowtimeBound`. This one also has `flush` and
`checkpoint`: it keeps the reader's position in one file with its alerts, so a drain into it resumes
where the last one ended. No Spark is needed here; the stream could be written by a query.

It prints:

    first run: ['09:00-10:00: 2 orders']
    second run: ['09:00-10:00: 2 orders', '10:00-11:00: 1 orders', '11:00-12:00: no orders']
"""

import json
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

import spark_rowtime as rt

HOUR = timedelta(hours=1)
DAY = "2006-09-11T{}:00Z"


class HourAlerts:
    """Counts orders per hour; a bound beyond the end of an hour completes it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        saved = json.loads(file.read_text()) if file.exists() else {}
        self.alerts: list[str] = saved.get("alerts", [])
        self.checkpoint: str | None = saved.get("position")
        """The reader's position; `drainTo` resumes from it."""
        self._counts = Counter({datetime.fromisoformat(hour): n for hour, n in saved.get("counts", [])})
        self._next = datetime.fromisoformat(saved.get("next", DAY.format("09:00")))

    def sendRows(self, rows: pa.RecordBatch) -> None:
        for time in rows.column("rowtime").to_pylist():
            self._counts[time.replace(minute=0, second=0, microsecond=0)] += 1

    def sendRowtimeBound(self, t: datetime, strict: bool = False) -> None:
        """Every hour that the bound has passed is complete, also one without orders.

        At the end of time no row follows: the hours up to the last one with orders are left.
        """
        ended = strict and t == rt.RowtimeBound.END.time
        while self._counts if ended else self._next + HOUR <= t:
            count = self._counts.pop(self._next, 0)
            self.alerts.append(f"{self._next:%H:%M}-{self._next + HOUR:%H:%M}: {count or 'no'} orders")
            self._next += HOUR

    def flush(self, checkpoint: str | None = None) -> None:
        """Replaces the file in one step: alerts, open hours and position are of one moment."""
        counts = [(hour.isoformat(), n) for hour, n in self._counts.items()]
        state = {"alerts": self.alerts, "counts": counts, "next": self._next.isoformat(), "position": checkpoint}
        draft = self._file.with_suffix(".draft")
        draft.write_text(json.dumps(state))
        draft.replace(self._file)


def run(stream: str, file: Path) -> list[str]:
    """One run of the consumer, up to the end of the stream. openReader(follow=True) would wait for more."""
    alerts = HourAlerts(file)
    with rt.openReader(stream) as reader:
        reader.drainTo(alerts)
    return alerts.alerts


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="rowtime-"))
    stream, file = str(folder / "orders.rowtime"), folder / "alerts.json"
    rt.createStream(stream, "rowtime TIMESTAMP NOT NULL, units INT")
    with rt.openSink(stream, producer="shop") as sink:
        sink.sendRows([(DAY.format("09:10"), 1), (DAY.format("09:50"), 2), (DAY.format("10:20"), 3)])
        sink.flush()
        print("first run:", run(stream, file))
        sink.sendRowtimeBound(DAY.format("12:00"))
        sink.flush()
        print("second run:", run(stream, file))


if __name__ == "__main__":
    main()

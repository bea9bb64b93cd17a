"""State functions of transformWithState that declare the event time of their output. Python workers import them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

DECLARED = "rowtime TIMESTAMP, k STRING"


class Reminders(StatefulProcessor):
    """Outputs each row five minutes after its time, by a timer, with the time of the timer."""

    def init(self, handle: Any) -> None:
        self.handle = handle

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in rows:
            for time in frame["rowtime"]:
                self.handle.registerTimer(int(time.timestamp() * 1000) + 300_000)
        yield from ()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        time = pd.Timestamp(expiredTimerInfo.getExpiryTimeInMs(), unit="ms")
        yield pd.DataFrame({"rowtime": [time], "k": [key[0]]})

    def close(self) -> None:
        pass


class Moved(StatefulProcessor):
    """Outputs each row of the key "moved" earlier by a number of microseconds, and other rows as they are."""

    def __init__(self, micros: int) -> None:
        self.micros = micros

    def init(self, handle: Any) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        by = pd.Timedelta(microseconds=self.micros if key[0] == "moved" else 0)
        for row in rows:
            yield Row(rowtime=(pd.Timestamp(row.rowtime) - by).to_pydatetime(), k=key[0])

    def close(self) -> None:
        pass

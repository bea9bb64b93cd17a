"""A processor that outputs the number of a key's rows when five minutes have passed since its first row."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Counting(StatefulProcessor):
    def init(self, handle: Any) -> None:
        self.handle = handle
        self.count = handle.getValueState("n", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        before = self.count.get()[0] if self.count.exists() else 0
        if not before:
            first = min(frame["rowtime"].min() for frame in frames)
            self.handle.registerTimer(int(first.timestamp() * 1000) + 300_000)
        self.count.update((before + sum(len(frame) for frame in frames),))
        yield pd.DataFrame()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield pd.DataFrame({"k": [key[0]], "n": [self.count.get()[0]]})

    def close(self) -> None:
        pass

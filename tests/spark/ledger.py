"""State functions of transformWithState for the tests, with each kind of state. Python workers import them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor

GAP_MS = 600_000
LEDGER = "k STRING, why STRING, n BIGINT, hours STRING, shown BIGINT"


def millis(times: "pd.Series[Any]") -> list[int]:
    return sorted(int(time.timestamp() * 1000) for time in times)


class Ledger(StatefulProcessor):
    """Keeps a key's times in a list and their number by hour in a map; outputs both for rows, and after ten minutes."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.times = handle.getListState("times", "at BIGINT")
        self.hours = handle.getMapState("hours", "hour INT", "n INT")

    def handleInitialState(self, key: Any, initialState: pd.DataFrame, timerValues: Any) -> None:
        self._add(millis(initialState["rowtime"]))

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        self._add(millis(pd.concat([frame["rowtime"] for frame in rows])))
        yield self._told(key, "rows", timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        yield self._told(key, "timer", timerValues)
        self.times.clear()
        self.hours.clear()

    def _add(self, times: list[int]) -> None:
        self.times.appendList([(at,) for at in times])
        for at in times:
            hour = (at // 3_600_000 % 24,)
            before = self.hours.getValue(hour)[0] if self.hours.containsKey(hour) else 0
            self.hours.updateValue(hour, (before + 1,))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(times[-1] + GAP_MS)

    def _told(self, key: Any, why: str, timers: Any) -> pd.DataFrame:
        n = len(list(self.times.get()))
        hours = ", ".join(f"{hour[0]}: {count[0]}" for hour, count in sorted(self.hours.iterator()))
        shown = timers.getCurrentWatermarkInMs()
        return pd.DataFrame({"k": [key[0]], "why": [why], "n": [n], "hours": [hours], "shown": [shown]})

    def close(self) -> None:
        pass


class Forgetting(StatefulProcessor):
    """Counts a key's rows twice: in a state that lives for an hour, and in one that lives for a millisecond."""

    def init(self, handle: Any) -> None:
        self.long = handle.getValueState("long", "n INT", ttlDurationMs=3_600_000)
        self.short = handle.getValueState("short", "n INT", ttlDurationMs=1)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        new = sum(len(frame) for frame in rows)
        kept = [state.get()[0] if state.exists() else 0 for state in (self.long, self.short)]
        for state, before in zip((self.long, self.short), kept, strict=True):
            state.update((before + new,))
        yield pd.DataFrame({"k": [key[0]], "long": [kept[0] + new], "short": [kept[1] + new]})

    def close(self) -> None:
        pass

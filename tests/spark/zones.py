"""Computes bounds of expressions with the extension's own classes: of far more than queries could be run for."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


class Bounds:
    """The bounds of the columns of a projection of ``rowtime``, for any floor of it."""

    def __init__(self, frame: DataFrame) -> None:
        self._jvm: Any = frame.sparkSession._jvm
        project = frame._jdf.queryExecution().analyzed()
        aliases = project.projectList()
        self._expressions = {aliases.apply(i).name(): aliases.apply(i) for i in range(aliases.size())}
        self._rowtime = project.child().output().last()

    def of(self, floor: int) -> dict[str, int]:
        """The floor of each column in its own unit (microseconds, or days of a DATE)."""
        columns, whole = self._new("Columns"), self._jvm.java.util.ArrayList()
        self._call("Columns", "put", columns, self._rowtime.exprId(), whole, self._call("Bound", "of", None, floor))
        bounds = self._new("ExprBounds", columns)
        found = {name: self._call("ExprBounds", "of", bounds, e) for name, e in self._expressions.items()}
        assert None not in found.values(), f"one has no bound: {found}"
        return {name: int(self._call("Bound", "floor", bound)) for name, bound in found.items()}

    @cache  # noqa: B019  (the object lives for one test)
    def _class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return loader.loadClass(f"sparkrowtime.bounds.{name}")

    @cache  # noqa: B019
    def _method(self, name: str, method: str, parameters: int) -> Any:
        methods = self._class(name).getDeclaredMethods()
        found = next(m for m in methods if m.getName() == method and m.getParameterCount() == parameters)
        found.setAccessible(True)
        return found

    def _new(self, name: str, *values: Any) -> Any:
        constructor = self._class(name).getDeclaredConstructors()[0]
        constructor.setAccessible(True)
        return constructor.newInstance(self._array(values))

    def _call(self, name: str, method: str, target: Any, *values: Any) -> Any:
        return self._method(name, method, len(values)).invoke(target, self._array(values))

    def _array(self, values: tuple[Any, ...]) -> Any:
        boxed = self._jvm.java.util.ArrayList()
        for value in values:
            boxed.add(self._jvm.java.lang.Long.valueOf(value) if isinstance(value, int) else value)
        return boxed.toArray()


class Transition(NamedTuple):
    """When the clocks of a zone change, in seconds since 1970, and the local times before and after."""

    at: int
    before: datetime
    after: datetime

    @property
    def is_odd(self) -> bool:
        """Whether clocks go back to a time that is not a whole hour, or to the day before."""
        return self.after < self.before and (self.after.minute > 0 or self.after.date() < self.before.date())


def transitions(spark: SparkSession, zone: str) -> list[Transition]:
    """The transitions in a zone's rules, and the yearly ones of 2030, and of years beyond 2262."""
    jvm: Any = spark._jvm
    rules = jvm.java.time.ZoneId.of(zone).getRules()
    yearly = [rule.createTransition(year) for year in (2030, 2400, 9998) for rule in rules.getTransitionRules()]
    return [
        Transition(
            t.toEpochSecond(),
            *(datetime.fromisoformat(d.toString()) for d in (t.getDateTimeBefore(), t.getDateTimeAfter())),
        )
        for t in [*rules.getTransitions(), *yearly]
    ]


def values(spark: SparkSession, expressions: Mapping[str, str], at: list[int]) -> list[dict[str, int]]:
    """The values of the expressions at these times, in microseconds."""
    times = spark.createDataFrame([(micros,) for micros in at], "at BIGINT").select(
        F.timestamp_micros("at").alias("rowtime")
    )
    numbers = [as_number(text).alias(name) for name, text in expressions.items()]
    return [row.asDict() for row in times.select(*numbers).collect()]


def as_number(text: str) -> Any:
    """The expression as a number: microseconds of a TIMESTAMP, days of a DATE."""
    return F.expr(f"unix_date({text})") if text.endswith("AS DATE)") else F.expr(f"unix_micros({text})")

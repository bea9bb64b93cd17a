"""DeltaCommit: what a commit of a Delta log says about itself, whoever has written it."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from spark_rowtime.drain.properties import BATCH, QUERY
from spark_rowtime.errors import StoreCorruptError
from spark_rowtime.types.json_values import load
from spark_rowtime.types.timestamps import LARGEST

_KEY, _PREFIX, _WHOLE = "commitInfo", "rowtime.", ("", "null", "[]")
"""The action with what a commit says, how our properties begin, and the predicates of a write of all rows."""


@dataclass(frozen=True)
class DeltaCommit:
    """The commit of a version: its action ``commitInfo``, which is empty if it has none.

    Others may have written anything there: what does not have the form that Delta's protocol gives it says nothing.
    """

    version: int
    info: dict[str, Any]

    @classmethod
    def of(cls, target: str, version: int, lines: Iterable[bytes]) -> Self:
        """Reads a commit, a line for each action, up to its ``commitInfo``."""
        for line in lines:
            action = _action(target, version, line) if _KEY.encode() in line else None
            info = action.get(_KEY) if isinstance(action, dict) else None
            if isinstance(info, dict):
                return cls(version, info)
        return cls(version, {})

    @property
    def operation(self) -> str:
        """Its name in the table's history; empty without one."""
        return _text(self.info.get("operation", ""))

    @property
    def time(self) -> int | None:
        """When it was made, in microseconds, as ``DeltaCommit`` in Java has it; None if it does not say so."""
        time = self.info.get("inCommitTimestamp", self.info.get("timestamp"))
        return time * 1000 if type(time) is int and 0 <= time <= LARGEST // 1000 else None

    @cached_property
    def said(self) -> dict[str, str]:
        """Its properties of spark-rowtime, as texts.

        Those of a query with Delta's own sink are in its ``userMetadata``, and count in the commit of the batch that
        they name: any statement of a session inherits the setting for it.
        """
        batch, given = self._parameters, _metadata(self.info.get("userMetadata"))
        is_of_batch = QUERY in given and given[QUERY] == batch.get("queryId")
        of_sink = given if is_of_batch and given.get(BATCH) == batch.get("epochId") else {}
        return {key: _text(value) for key, value in {**of_sink, **self.info}.items() if key.startswith(_PREFIX)}

    @property
    def isRestore(self) -> bool:
        """Whether it has brought back the rows of an earlier version."""
        return self.operation == "RESTORE"

    @property
    def restored(self) -> int | None:
        """The version whose rows a RESTORE has brought back; None if the log does not say it."""
        said = self._parameters.get("version", "")
        version = int(said) if re.fullmatch("[0-9]{1,18}", said) else self.version
        return version if version < self.version else None

    @property
    def replaces(self) -> bool:
        """Whether it put other rows in the place of all that were there."""
        parameters = self._parameters
        whole = parameters.get("predicate", "") in _WHOLE and parameters.get("isDynamicPartitionOverwrite") != "true"
        return (
            "REPLACE TABLE" in self.operation
            or self.operation == "CLONE"
            or (self.operation == "STREAMING UPDATE" and parameters.get("outputMode") == "Complete")
            or (self.operation == "WRITE" and parameters.get("mode") == "Overwrite" and whole)
        )

    @property
    def hasCopied(self) -> bool:
        """Whether it has rows of another table, as they were there, without what that table's commits say of them."""
        metrics = self.info.get("operationMetrics")
        files = metrics.get("sourceNumOfFiles") if isinstance(metrics, dict) else None
        return self.operation == "CLONE" and files not in ("0", 0)

    @cached_property
    def _parameters(self) -> dict[str, str]:
        given = self.info.get("operationParameters")
        return {key: _text(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _action(target: str, version: int, line: bytes) -> object:
    try:
        return load(line)
    except ValueError as error:
        raise StoreCorruptError(
            f"Version {version} of {target} is no commit of a Delta log: a line of its file in _delta_log is no action "
            f"in JSON ({type(error).__name__}). Restore the file, or write to another table.",
            path=target,
        ) from error


def _metadata(text: object) -> dict[str, Any]:
    try:
        given = load(text) if isinstance(text, str) and QUERY in text else {}
    except ValueError:
        given = {}
    return given if isinstance(given, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)

"""TablesWithin: the tables and streams to which an answer about a table may lead."""

from collections.abc import Sequence

from spark_rowtime.diagnosis.reach import Reach, Within

DELTA, ICEBERG = "delta:", "iceberg:"
"""How targets begin."""


class TablesWithin(Reach):
    """What is around the table that was asked for, and within what the caller names: folders, or ``iceberg:CATALOG``.

    Around a Delta table are its folder and what is below. Around an Iceberg table are those of its catalog, whose
    address and user are of PyIceberg's configuration here, whoever has written a status.
    """

    def __init__(self, target: str, within: Sequence[str] = ()) -> None:
        super().__init__()
        names = () if isinstance(within, str) else tuple(name for name in within if _is_iceberg(name))
        folders = within if isinstance(within, str) else [name for name in within if name not in names]
        self._files = Within(local(target.removeprefix(DELTA)) if target.startswith(DELTA) else None, folders)
        around = (target.partition(".")[0],) if _is_iceberg(target) else ()
        self._names = [name.split(".") for name in (*around, *names)]

    def _path_of(self, stored: str) -> str | None:
        if not _is_iceberg(stored):
            return self._files.path_of(stored)
        parts = stored.split(".")
        return stored if any(parts[: len(name)] == name for name in self._names) else None

    def shown(self, stored: str) -> str:
        """See Reach."""
        return self._files.shown(stored)


def _is_iceberg(name: object) -> bool:
    return isinstance(name, str) and name.startswith(ICEBERG)


def local(path: str) -> str:
    """A path as Hadoop writes it, ``file:/lake``, as one of this machine; others stay."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:/") else path

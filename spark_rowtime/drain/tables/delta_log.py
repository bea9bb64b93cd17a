"""Which commit of a Delta log the rows that a reader sees belong to, where the table was set back or replaced."""

import io
from typing import Any, NamedTuple

from spark_rowtime.drain.properties import BOUND, COMMIT, continued, marked, require_times, tells_position
from spark_rowtime.drain.tables.delta_commit import DeltaCommit
from spark_rowtime.errors import DataLostError, StoreUnavailableError
from spark_rowtime.types.extras import import_extra

_BUFFER = 1 << 16
"""How many bytes of a commit are read at once; what a commit says is most often at its beginning."""


class DeltaLog:
    """The commits of a table, each the file of its version, which is read where the library reads the table.

    The history of ``deltalake`` has no versions of its own: it counts, and a commit without ``commitInfo`` does not
    count there.
    """

    def __init__(self, target: str, uri: str) -> None:
        self._target = target
        self._files: Any = import_extra("deltalake.fs", "delta", target).DeltaStorageHandler(uri)

    def commit(self, version: int) -> DeltaCommit | None:
        """The commit of a version; None if its file is not there any more: a log is cleaned up from its beginning."""
        try:
            with io.BufferedReader(self._files.open_input_file(f"_delta_log/{version:020}.json"), _BUFFER) as lines:
                return DeltaCommit.of(self._target, version, lines)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreUnavailableError(f"{self._target} cannot be read: {error}", path=self._target) from error


class InSight(NamedTuple):
    """What a log tells of the rows that a reader sees.

    ``properties`` are those of the last commits by spark-rowtime that led to them; empty without one. ``commit`` is
    that of the drain or query.
    ``missing`` is the version that would have to be looked at to know more; None where the log has all that is needed.
    ``wentBack``: whether a RESTORE was passed on the way. ``place`` is the version that has the position.
    """

    properties: dict[str, str]
    commit: DeltaCommit | None = None
    missing: int | None = None
    wentBack: bool = False
    place: str = ""


def in_sight(target: str, log: DeltaLog, version: int, *, drained: bool, writes: bool) -> InSight:
    """Walks back from ``version``, and reads only the commits on its way.

    A RESTORE leads to the version that it names: the commits between are there, but their rows are not. Where a table
    is ``drained`` into, and for who ``writes``, commits by others with properties and without a position or a query do
    not hide that of the drain or query. Raises DataLostError where a position lies behind a commit after which nobody
    knows which rows are there, and for who ``writes`` on top of a clone.
    """
    newest: InSight | None = None
    replaced, went_back = None, False
    while version >= 0:
        commit = log.commit(version)
        if commit is None:
            return (newest or InSight({}))._replace(missing=version, wentBack=went_back)
        if found := marked(commit.said):
            ends = tells_position(found) or COMMIT in commit.said or (BOUND in found and not (drained or writes))
            if newest is None or BOUND not in newest.properties or ends:
                _require_not_replaced(target, replaced)
                require_times(found, target, f"version {version}")
            if newest is None:
                newest = InSight(found, commit)
            newest = newest._replace(properties=continued(newest.properties, found))
            if ends:
                return newest._replace(commit=commit, place=f"version {version}")
        if writes and commit.hasCopied:
            raise _copied(target, commit)
        replaced = replaced or (commit if commit.replaces else None)
        went_back = went_back or commit.isRestore
        version = _restored(target, commit) if commit.isRestore else version - 1
    return newest or InSight({})


def _restored(target: str, commit: DeltaCommit) -> int:
    version = commit.restored
    if version is not None:
        return version
    raise DataLostError(
        f"{target} was set back by RESTORE to a time (version {commit.version} of its log), and the log does not "
        "say which version that was; so the position and the bound of its rows are not known. Say it by number, which "
        "changes no row if it is the same: RESTORE TABLE ... TO VERSION AS OF n.",
        path=target,
    )


def _require_not_replaced(target: str, commit: DeltaCommit | None) -> None:
    if commit is not None:
        raise DataLostError(
            f"Version {commit.version} of {target} ({commit.operation}) has replaced all rows since the last "
            "drain or query. Whether the rows up to its position are among the new ones is not known. Drain into "
            f"another table, or set this one back: RESTORE TABLE ... TO VERSION AS OF {commit.version - 1}.",
            path=target,
        )


def _copied(target: str, commit: DeltaCommit) -> DataLostError:
    return DataLostError(
        f"Version {commit.version} of {target} is a clone: it has the rows of another table, and not the position that "
        "a drain or query may have written there. Which rows of the stream are there is not known, and they could come "
        "twice. Drain into a new table, or into one that was copied with its _delta_log. If none of the rows are of "
        "the stream, make the table by CREATE TABLE ... AS SELECT.",
        path=target,
    )

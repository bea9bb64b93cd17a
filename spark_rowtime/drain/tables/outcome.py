"""Whether a table has a commit whose answer was lost, or was an error although the commit took place."""

import time
from collections.abc import Callable
from typing import TypeVar

from spark_rowtime.drain.tables.loading import shown, told
from spark_rowtime.errors import StoreUnavailableError

T = TypeVar("T")
PAUSES = (0.2, 1.0, 2.0)
"""How long to wait, in seconds, before a commit without an answer is made again."""


def settled(
    target: str,
    commit: Callable[[], T],
    find: Callable[[], T | None],
    *,
    refused: type[Exception],
    lost: tuple[type[Exception], ...],
) -> T:
    """Makes a commit, and whatever error answers, looks whether the table has it; if not, makes it again.

    Law (*once*): ``commit`` can take place once, however often it is called, since each call is on top of the same
    state of the table. ``find`` returns what ``commit`` would have, if the table has that very commit.

    Args:
        target: The table, for errors.
        commit: Makes the commit.
        find: Looks for it in the table as it is now.
        refused: The error which says that another commit came first; it is raised if the table does not have this one.
        lost: Errors after which the commit may or may not be in the table. Others are raised as they are.

    Returns:
        What ``commit`` or ``find`` returned.

    Raises:
        StoreUnavailableError: The table could not be asked, or still does not have the commit after the last attempt.
    """
    for pause in (*PAUSES, None):
        try:
            return commit()
        except (refused, *lost) as error:
            if (found := looked_up(target, find, error)) is not None:
                return found
            if isinstance(error, refused):
                raise
            if pause is None:
                raise _unanswered(target, error) from told(error)
            time.sleep(pause)
    raise AssertionError


def looked_up(target: str, find: Callable[[], T | None], cause: Exception) -> T | None:
    """What ``find`` returns; StoreUnavailableError if the table cannot be read."""
    try:
        return find()
    except Exception as error:  # each catalog and each kind of storage has errors of its own
        error = told(error)
        raise StoreUnavailableError(
            f"{target} cannot be read or written: {shown(cause)}. Whether it has this commit is not known, since the "
            f"table could not be asked ({shown(error)}). Run the drain or the query again: it begins with what the "
            "table has.",
            path=target,
        ) from error


def _unanswered(target: str, error: Exception) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"{target} cannot be read or written: {shown(error)}. The commit was tried {len(PAUSES) + 1} times, and was "
        "not in the table when it was last looked; a request that is still on its way may bring it yet, once. Run the "
        "drain or the query again: it begins with what the table has.",
        path=target,
    )

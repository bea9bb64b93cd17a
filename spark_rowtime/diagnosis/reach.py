"""Reach: the streams to which an answer may lead. The paths in statuses are data, of whoever may write a status."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from spark_rowtime.errors import InvalidOptionError, RowtimeError
from spark_rowtime.store.place import around, path_within, place_of
from spark_rowtime.types.short_repr import short_repr

_SHOWN_CHARACTERS = 500


class Reach(ABC):
    """Which of the streams that statuses name may be opened to answer one question.

    Law: whoever writes a status decides neither which server, database or kind of store is opened, nor with which
    user and options.
    """

    shows_values = True
    """Whether the answer may have values of rows."""

    def __init__(self) -> None:
        self.not_followed: list[str] = []
        """The streams that statuses have named, and to which the answer must not lead, as they are shown."""

    def path_of(self, stored: str) -> str | None:
        """The path at which the stream that a status names is opened; None: the answer must not lead there."""
        found = self._path_of(stored)
        if found is None and self.shown(stored) not in self.not_followed:
            self.not_followed.append(self.shown(stored))
        return found

    @abstractmethod
    def _path_of(self, stored: str) -> str | None: ...

    @abstractmethod
    def shown(self, stored: str) -> str:
        """How the answer names a stream to which it does not lead."""


class Within(Reach):
    """The streams around the one that was asked for, if there is one, and those within ``folders``.

    Around a stream in a directory are those in the folder that has it, and below, where links lead out of neither.
    Around one in a database are those of this database, opened with the user and the options of the caller's path.
    """

    def __init__(self, path: str | None, folders: Sequence[str] = ()) -> None:
        super().__init__()
        if isinstance(folders, str):
            raise InvalidOptionError(
                f"within must be a list of paths, such as ['/data/streams'], not {short_repr(folders)}.",
                option="within",
                value=short_repr(folders),
            )
        asked = [] if path is None else [(around(place_of(path)), path)]
        roots = [*asked, *((place_of(folder), folder) for folder in folders)]
        self._roots = [(root, given) for root, given in roots if root is not None]

    def _path_of(self, stored: str) -> str | None:
        try:
            place = place_of(stored)
        except RowtimeError:
            return None
        given = next((given for root, given in self._roots if place[: len(root)] == root), None)
        return None if given is None else path_within(given, stored)

    def shown(self, stored: str) -> str:
        """See Reach. Whoever asks may read the status."""
        return stored if stored.isprintable() and 0 < len(stored) <= _SHOWN_CHARACTERS else short_repr(stored)

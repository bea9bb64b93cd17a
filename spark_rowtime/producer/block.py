"""BlockEnd: what is closed at the end of a ``with`` block, and abandoned after an error."""

from typing import Self


class BlockEnd:
    """A context manager: leaving the block calls ``close``, or ``abandon`` after an error."""

    def close(self) -> None:
        """Ends it in order."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Ends it without what was not asked for."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

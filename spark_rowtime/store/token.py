"""The token of a flush: where what was flushed lies in its stream, as a small text."""

from typing import NamedTuple

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.short_repr import short_repr

_KIND = "rowtime1"


class FlushMark(NamedTuple):
    """A place in a stream's log: up to ``seq``. ``largest`` is the largest rowtime flushed, in microseconds, or None.

    ``stream`` is the id of the stream.
    """

    stream: str
    seq: int
    largest: int | None

    def token(self) -> str:
        """Returns the mark as a text that ``parse`` reads."""
        return f"{_KIND}:{self.stream}:{self.seq}:{'-' if self.largest is None else self.largest}"


def parse(token: str) -> FlushMark:
    """Reads a token. Raises InvalidOptionError for any other text."""
    parts = token.strip().split(":") if isinstance(token, str) else []
    try:
        kind, stream, seq, largest = parts
        if kind == _KIND:
            return FlushMark(stream, int(seq), None if largest == "-" else int(largest))
    except ValueError:
        pass
    raise InvalidOptionError(
        f"{short_repr(token)} is no token. Give the text that sink.flush() has returned.",
        option="token",
        value=short_repr(token),
    )

"""Times of a CSV file that are not in ISO 8601."""

import re
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import to_datetime

_SHORT = {"%T": "%H:%M:%S", "%R": "%H:%M", "%D": "%m/%d/%y", "%F": "%Y-%m-%d", "%e": "%d", "%h": "%b"}
"""Directives of C's strptime that Python's does not have."""
_NAIVE, _AWARE = pa.timestamp("us"), pa.timestamp("us", "UTC")
_DIRECTIVE = re.compile("%.", re.DOTALL)


class TimeFormat:
    """A format of ``strptime``, such as ``%d.%m.%Y %H:%M``. A text that does not fit is read as ISO 8601.

    Law: a text that names no day or time of the calendar is refused. Arrow's own parser makes 3 March of 31 February,
    leaves a zone's name unread, and knows no fractions of seconds; so what it reads counts only if it is written back
    as the same text.
    """

    def __init__(self, text: str) -> None:
        """Raises InvalidOptionError for a format that says no time."""
        self._text = _DIRECTIVE.sub(lambda found: _SHORT.get(found[0], found[0]), text)
        self._aware: bool | None = None
        """Whether the times that were read have an offset from UTC."""
        if "%Z" in _DIRECTIVE.findall(text):
            raise InvalidOptionError(
                f"--time-format {text}: a zone's name is not read. Write offsets and %z, or name the zone with --tz.",
                option="time-format",
                value=text,
            )
        try:
            datetime.strptime("", self._text)  # noqa: DTZ007
        except (ValueError, re.error) as error:
            if "does not match" not in str(error):
                raise InvalidOptionError(f"--time-format {text}: {error}.", option="time-format", value=text) from None

    def parse(self, text: str) -> datetime:
        """Returns the time that a text says. Raises InvalidOptionError if it says none."""
        try:
            return datetime.strptime(text.strip(), self._text)  # noqa: DTZ007  (the zone is --tz, or UTC)
        except ValueError:
            return to_datetime(text)

    def column(self, texts: pa.Array) -> pa.Array:
        """Returns the times of a column of texts, which all have an offset from UTC, or all have none."""
        encoded = texts.dictionary_encode()
        read, same = self._read_by_arrow(encoded.dictionary)
        if pc.any(same).as_py():
            self._note(aware=False)
        if pc.all(same).as_py():
            return read.cast(_NAIVE).take(encoded.indices)
        others = self._read_others(encoded.dictionary.filter(pc.invert(same)))
        self._note(aware=others.type.tz is not None)
        return pc.replace_with_mask(read.cast(others.type), pc.invert(same), others).take(encoded.indices)

    def _read_by_arrow(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The times that Arrow reads, many times as fast as Python, and which of them the texts say."""
        read = pc.strptime(texts, self._text, "s", error_is_null=True)
        try:
            return read, pc.fill_null(pc.equal(pc.strftime(read, self._text), texts), False)
        except pa.ArrowInvalid:  # a directive that it does not write
            return read, pa.array([False] * len(texts), pa.bool_())

    def _read_others(self, texts: pa.Array) -> pa.Array:
        """The times of texts that Arrow does not read by the format: as ISO 8601, or one by one."""
        for kind in (_NAIVE, _AWARE):
            with suppress(pa.ArrowInvalid):
                return texts.cast(kind)
        moments = [self.parse(text) for text in texts.to_pylist()]
        for moment in moments:
            self._note(aware=moment.utcoffset() is not None)
        return pa.array(moments, _AWARE if self._aware else _NAIVE)

    def _note(self, *, aware: bool) -> None:
        if self._aware not in (None, aware):
            raise InvalidOptionError("some times have an offset from UTC and others none")
        self._aware = aware

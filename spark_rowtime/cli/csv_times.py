"""Times of a CSV file that are not in ISO 8601."""

from datetime import datetime

import pyarrow as pa

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.timestamps import to_datetime


class TimeFormat:
    """A format of ``strptime``, such as ``%d.%m.%Y %H:%M``. A text that does not fit is read as ISO 8601.

    Law: a text that names no day or time of the calendar is refused. Arrow's own parser makes 3 March of 31 February,
    leaves a zone's name unread, and knows no fractions of seconds.
    """

    def __init__(self, text: str) -> None:
        """Raises InvalidOptionError for a format that says no time."""
        self._text = text
        if "%Z" in text.replace("%%", ""):
            raise InvalidOptionError(
                f"--time-format {text}: a zone's name is not read. Write offsets and %z, or name the zone with --tz.",
                option="time-format",
                value=text,
            )
        try:
            datetime.strptime("", text)  # noqa: DTZ007
        except ValueError as error:
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
        moments = [self.parse(text) for text in encoded.dictionary.to_pylist()]
        aware = {moment.utcoffset() is not None for moment in moments}
        if len(aware) > 1:
            raise InvalidOptionError("some times have an offset from UTC and others none")
        return pa.array(moments, pa.timestamp("us", "UTC" if True in aware else None)).take(encoded.indices)

"""Period: what one announcement says."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Period:
    """A period of which a stream is complete: no row with a rowtime in it, or before it, will follow.

    Attributes:
        start: The first moment of the period, in the time zone of the announcements.
        end: The first moment after it.
        key: The name of the period, in the form that ``key`` of ``announceTo`` asks for.
        stream: The path of the stream, as it was given.
        every: The length of the periods, such as "1h", "15min" or "1d".

    Example:
        >>> import spark_rowtime as rt
        >>> rt.createStream("memory://docs-period", "rowtime TIMESTAMP NOT NULL, ticker STRING")
        >>> with rt.openSink("memory://docs-period") as sink:
        ...     sink.sendRow(("2026-01-05T14:30:00Z", "IBM"))
        ...     sink.sendRowtimeBound("2026-01-05T15:00:00Z")
        >>> periods = []
        >>> rt.announceTo("memory://docs-period", periods.append, every="1 hour", tz="America/New_York")
        1
        >>> periods[0].start.isoformat(), periods[0].key
        ('2026-01-05T09:00:00-05:00', '2026-01-05T09:00:00')
    """

    start: datetime
    end: datetime
    key: str
    stream: str
    every: str

    def fields(self) -> dict[str, str]:
        """The period as texts, for the body of a request and for templates."""
        return {
            "stream": self.stream,
            "every": self.every,
            "key": self.key,
            "start": iso_text(self.start),
            "end": iso_text(self.end),
        }


def iso_text(moment: datetime) -> str:
    """ISO 8601 with the offset from UTC; Z in UTC."""
    text = moment.isoformat()
    return text.replace("+00:00", "Z") if moment.tzname() == "UTC" else text

"""BoundOrigin: whose bound it was that a late row fell below."""

from dataclasses import dataclass

PRODUCER, STREAM = "producer", "stream"
_EVENTS = {"sent": "sent rows or a bound", "left": "closed", "detached": "was detached", "idled": "fell silent"}


@dataclass(frozen=True, slots=True)
class BoundOrigin:
    """The origin of a bound.

    ``owner`` is PRODUCER where the producer of the late row had promised the bound itself: by a bound, by a row in
    order, or by the order that it declared. It is STREAM where the bound was the stream's. Then ``producer`` and
    ``event`` name the event that raised the stream's bound so far: who it was, and what it did ("sent", "left",
    "detached", "idled"); None if that event is no longer in the log.

    Example:
        >>> print(BoundOrigin("stream", "Oslo", "left"))
        the stream's since producer 'Oslo' closed
        >>> print(BoundOrigin("producer", "Berlin"))
        the promise of producer 'Berlin' itself
    """

    owner: str
    producer: str | None = None
    event: str | None = None

    def __str__(self) -> str:
        if self.owner == PRODUCER:
            return f"the promise of producer {self.producer!r} itself"
        if self.producer is None or self.event is None:
            return "the stream's"
        return f"the stream's since producer {self.producer!r} {_EVENTS.get(self.event, self.event)}"

    def values(self) -> dict[str, str | None]:
        """Returns the origin by the names that errors and ``view=rejected`` use."""
        return {"boundOf": self.owner, "boundBy": self.producer, "boundEvent": self.event}


def origin_values(origin: BoundOrigin | None) -> dict[str, str | None]:
    """Returns ``origin.values()``; if the origin is not known, the same names, each with None."""
    return origin.values() if origin else dict.fromkeys(("boundOf", "boundBy", "boundEvent"))

"""What an interrupt leaves half-done is not used again."""

from types import TracebackType


class InterruptGuard:
    """``with unbroken:`` around steps that belong together.

    Law: after an interrupt between them (KeyboardInterrupt and whatever else is no Exception; a signal's handler
    raises it anywhere), ``broken`` is true for good. An Exception is raised where everything is as it was.
    """

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False

    def __enter__(self) -> None:
        """They begin."""

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.broken = self.broken or (error is not None and not isinstance(error, Exception))

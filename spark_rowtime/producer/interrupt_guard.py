"""Marks an object as broken if an interrupt has left its state incomplete."""

from types import TracebackType


class InterruptGuard:
    """``with interrupt_guard:`` encloses steps that must be done together.

    Law: after an interrupt among these steps (KeyboardInterrupt, or another BaseException that is no Exception; a
    signal handler may raise it anywhere), ``broken`` stays true. An Exception does not set it, since the steps raise
    one only while nothing has changed yet.
    """

    __slots__ = ("broken",)

    def __init__(self) -> None:
        self.broken = False

    def __enter__(self) -> None:
        """Begins the steps."""

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self.broken = self.broken or (error is not None and not isinstance(error, Exception))

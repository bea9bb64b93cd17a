"""Inquiry: a question to the brokers that is asked in the background, while messages are read on."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Inquiry(Generic[T]):
    """The answer of a question, once it is there. What the question raises, ``result`` raises."""

    def __init__(self, question: Callable[[], T]) -> None:
        self._question = question
        self._found: list[T] = []
        self._error: Exception | None = None
        self.done = False
        """Whether the answer is there."""

    def ask(self) -> "Inquiry[T]":
        """Asks, and returns when the answer is there."""
        try:
            self._found = [self._question()]
        except Exception as error:  # noqa: BLE001  (whoever asks for the result gets it)
            self._error = error
        self.done = True
        return self

    @property
    def result(self) -> T:
        """The answer."""
        if self._error is not None:
            raise self._error
        return self._found[0]


def in_background(question: Callable[[], T]) -> Inquiry[T]:
    """Asks in a thread of its own, and returns at once. The end of the process does not wait for the thread."""
    inquiry = Inquiry(question)
    threading.Thread(target=inquiry.ask, name="rowtime-kafka-inquiry", daemon=True).start()
    return inquiry

"""Inquiry: a question to the brokers that is asked in the background, while messages are read on."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(question: Callable[[], T]) -> Future[T]:
    """Asks in a thread of its own, and returns at once. The end of the process does not wait for the thread."""
    answer = Future[T]()
    threading.Thread(target=_ask, args=(question, answer), name="rowtime-kafka-inquiry", daemon=True).start()
    return answer


def _ask(question: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(question())
    except Exception as error:  # noqa: BLE001  (whoever asks for the result gets it)
        answer.set_exception(error)

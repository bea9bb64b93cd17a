"""Failing: a method that fails at some call."""

from typing import Any


class Failing:
    """In the place of a method: fails at the call of that number, before (or behind) what it does."""

    def __init__(self, call: Any, at: int, error: BaseException, behind: bool = False) -> None:
        self.call, self.at, self.error, self.behind = call, at, error, behind

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.at -= 1
        if self.at == 0 and not self.behind:
            raise self.error
        result = self.call(*arguments, **options)
        if self.at == 0:
            raise self.error
        return result

"""A progress bar for work that may take long, on a terminal or in a notebook only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, int | None], object]
"""Called with how much is done, and how much there is to do; None: not known."""


@contextmanager
def progress_bar(what: str) -> Iterator[Advance | None]:
    """Shows a bar on standard error until the block ends. Yields None where there is nobody to look at it."""
    from rich.console import Console  # noqa: PLC0415  (every adapter imports this module, and few show a bar)
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

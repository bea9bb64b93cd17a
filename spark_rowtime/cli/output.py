"""How commands show things: as JSON, or as text in columns that fit the terminal."""

import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import click

from spark_rowtime.types.arguments import is_unseen
from spark_rowtime.types.json_values import dump

Command = TypeVar("Command", bound=Callable[..., Any])
_LABEL_WIDTH = 10
_STYLED_OR_ODD = re.compile(r"(\x1b\[(?:[012]|33)m)|[^\x09\x20-\x7e]")
"""What ``styled`` makes, and the characters among which there are some that nobody sees or that a terminal obeys."""


def as_json(command: Command) -> Command:
    """Adds the option ``--json`` to a command, which gets it as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def harmless(text: str) -> str:
    """Returns the text with escapes, as JSON has them, for what moves a terminal's cursor, breaks a line or is unseen.

    Names and values are those of whoever has written the stream.
    """
    return _STYLED_OR_ODD.sub(lambda found: found[1] or _escaped(found[0]), text)


def _escaped(character: str) -> str:
    if not is_unseen(character):
        return character
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def say(line: str, *, err: bool = False) -> None:
    """Prints one line, whatever is in it."""
    click.echo(harmless(line), err=err)


def say_all(lines: Iterable[str]) -> None:
    """Prints lines."""
    for line in lines:
        say(line)


def echo_json(value: Any) -> None:
    """Prints a value as one line of JSON."""
    say(dump(value))


def text_width() -> int:
    """The number of columns of the terminal; 80 where there is none. The variable COLUMNS overrides both."""
    return shutil.get_terminal_size((80, 24)).columns


def styled(text: str, **style: Any) -> str:
    """Returns the text with colours, if it is for a terminal and the variable NO_COLOR is not set."""
    return click.style(text, **style) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text


def fact(label: str, text: str, width: int) -> list[str]:
    """A labelled text, broken into lines. A word that is longer than a line, such as a path, is not broken."""
    return textwrap.wrap(
        text,
        max(width, 2 * _LABEL_WIDTH),
        initial_indent=f"{label} ".ljust(_LABEL_WIDTH),
        subsequent_indent=" " * _LABEL_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )


def parts_in_lines(parts: Sequence[str]) -> list[str]:
    """The parts in one line; on a terminal in several, where one is too narrow. No part is broken."""
    width = text_width() if sys.stdout.isatty() else sys.maxsize
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 2 + len(part) <= width:
            lines[-1] += f"  {part}"
        else:
            lines.append(f"    {part}")
    return lines


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The lines of the head and of each row, in columns.

    If they are too wide, each first cell, a name, has its own line above the other cells.
    """
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 <= width:
        return [[_cells(row, widths)] for row in (head, *rows)]
    return [[name, "  " + _cells(rest, widths[1:])] for name, *rest in (head, *rows)]


def marked(head: Sequence[str], rows: Sequence[Sequence[str]], marks: Iterable[bool], width: int) -> list[list[str]]:
    """What ``table`` returns, with a star before each row that has a mark."""
    return [
        [styled(f"* {first}", bold=True) if mark else f"  {first}", *(f"  {line}" for line in rest)]
        for (first, *rest), mark in zip(table(head, rows, width - 2), [False, *marks], strict=True)
    ]


def _cells(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def duration(interval: timedelta) -> str:
    """An interval in its largest whole unit, such as "12 min"."""
    seconds = max(interval.total_seconds(), 0)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"


def log_to_stderr() -> None:
    """Shows what is logged, from INFO on, with its time: for commands that run on."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)

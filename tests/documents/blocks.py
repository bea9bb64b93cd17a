"""The code blocks of a page, and what each is said to print."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of Python or of a shell, from line ``line`` on; ``prints``: the text block right behind it, if any."""

    language: str
    code: str
    line: int
    prints: str | None


def blocks(page: Path) -> list[Block]:
    """The blocks of ``python`` and ``bash`` in their order. Blocks of other kinds are only shown."""
    text = page.read_text()
    found = list(FENCED.finditer(text))
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 2, _printed(text, match, after))
        for match, after in zip(found, [*found, None][1:], strict=True)
        if match[1] in ("python", "bash")
    ]


def shown_commands(page: Path) -> list[list[str]]:
    """The words of each command ``rowtime`` in a block that does not run, but for those with words left out (...)."""
    shown = [block[2].replace("\\\n", "") for block in FENCED.finditer(page.read_text()) if block[1] != "bash"]
    lines = [line.removeprefix("$ ") for block in shown for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("rowtime ")]
    return [words[1:] for words in commands if "..." not in words]


def inline_commands(page: Path) -> list[list[str]]:
    """The words of each command ``rowtime`` within a sentence."""
    return [match[1].split() for match in re.finditer(r"`(rowtime [^`]+)`", FENCED.sub("", page.read_text()))]


def _printed(text: str, block: re.Match[str], after: re.Match[str] | None) -> str | None:
    follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
    return after[2] if follows and after is not None else None

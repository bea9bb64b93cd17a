"""Tables in HTML, for notebooks. Every text is escaped, so a name is shown as it is, whatever it contains."""

from collections.abc import Iterable, Sequence
from html import escape


def html_facts(caption: str, facts: Iterable[tuple[str, str]]) -> str:
    """Returns a table with a row for each fact: its label, and its text."""
    rows = "".join(f'<tr><th scope="row">{escape(label)}</th><td>{escape(text)}</td></tr>' for label, text in facts)
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table with a head and a body."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"

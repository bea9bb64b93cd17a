"""Values that must not be seen, in texts that others wrote."""

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

HIDDEN = "***"
"""Stands for a value that is not shown."""
_ESCAPE = re.compile("%[0-9a-f]{2}", re.IGNORECASE)
"""A percent escape in a URL. urllib3 writes its digits in capital letters."""
LEAST_CHARACTERS = 4
"""Shorter parts of an argument are not hidden: they occur in ordinary words."""


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced, also as a URL, a text of JSON or the name of a host has it."""
    forms = {form for secret in secrets if secret for form in _forms(secret)}
    for secret in sorted(forms, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def values_of(arguments: Any) -> Iterator[str]:
    """Yields the texts in arguments, however deep, and of a URL the parts that may hold a secret.

    >>> sorted(values_of({"url": "https://me:p%4012@example.com/bot7?key=abcd", "page": 3}))
    ['/bot7', '/bot7?key=abcd', 'abcd', 'https://me:p%4012@example.com/bot7?key=abcd', 'key=abcd', 'p%4012', 'p@12']
    """
    if isinstance(arguments, Mapping):
        for value in arguments.values():
            yield from values_of(value)
    elif isinstance(arguments, list | tuple | set):
        for value in arguments:
            yield from values_of(value)
    elif isinstance(arguments, bytes | bytearray):
        yield from values_of(arguments.decode(errors="replace"))
    elif isinstance(arguments, str):
        yield from (text for text in (arguments, *_parts(arguments)) if len(text) >= LEAST_CHARACTERS)


def _parts(text: str) -> Iterator[str]:
    try:
        url = urlsplit(text)
        password = url.password or ""
    except ValueError:
        return
    if url.netloc:
        target = f"{url.path}?{url.query}" if url.query else ""
        parts = (url.username or "", password, url.path, target, url.query, url.fragment)
        yield from (*parts, *map(unquote, parts), *(value for _, value in parse_qsl(url.query)))
    yield from (word.partition("=")[2] for word in text.split() if "=" in word)


def _forms(secret: str) -> Iterator[str]:
    plain = unquote(secret)
    for written in (secret, secret.lower(), plain if len(plain) >= LEAST_CHARACTERS else secret):
        yield from (written, quote(written), quote(written, safe=""), html.escape(written))
        yield _ESCAPE.sub(lambda escape: escape[0].upper(), written)
        yield from (json.dumps(written, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))

"""The headers of a message, whose names may be any bytes."""

import gc
from typing import Any

from spark_rowtime.kafka.malformed import MalformedError


def headers_of(message: Any) -> list[tuple[str, bytes | None]]:
    """The headers of a message, in their order; MalformedError if the name of one is no text in UTF-8.

    The client leaves an error behind then, which some later call raises as SystemError. If it is asked again, also
    after a decoder has asked, it returns pairs with holes, which nobody may look into: that ends the process. The
    garbage collector alone passes over them.
    """
    try:
        found: list[tuple[str, bytes | None]] = message.headers() or []
        whole = len(gc.get_referents(found)) == len(found) and len(gc.get_referents(*found)) == 2 * len(found)
    except (SystemError, UnicodeDecodeError):
        whole = False
    if not whole:
        raise MalformedError("the name of one of its headers is no text in UTF-8")
    return found


def raise_left_behind() -> None:
    """Raises the SystemError that the client has left behind, if a decoder has looked at such headers."""
    gc.get_referents()

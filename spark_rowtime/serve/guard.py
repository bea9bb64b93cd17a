"""What every answer is checked for and carries: names of hosts, and headers that keep a browser to this server."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""A page loads nothing from elsewhere, runs no text as a script, and is in no frame. Other origins cannot read it."""


class Guard:
    """Refuses requests that name this server by a host name that it does not have, and adds HEADERS to each answer.

    A page elsewhere can let its own name point to this address (DNS rebinding); a browser then takes the two for one
    origin. The name is in the request's Host, which no page can change. An address is not a name, so it is allowed.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in ("localhost", *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        host = Headers(scope=scope).get("host", "")
        app = self._app if self._is_own(host) else _refusal(host)
        await app(scope, receive, with_headers)

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name is not None and (name in self._names or _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(host: str) -> PlainTextResponse:
    return PlainTextResponse(
        f"This server is not known as {host[:100]!r}. Use its address, or start it with --allow-host NAME.\n", 421
    )

"""The web application: the page, the JSON under /api, and /metrics. All of it is read only, and refuses other hosts."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spark_rowtime.errors import InvalidOptionError, RowtimeError, StreamNotFoundError
from spark_rowtime.serve.call import SharedCalls
from spark_rowtime.serve.metrics import registry_of
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.state import read_shown, shown
from spark_rowtime.serve.watcher import Watcher
from spark_rowtime.types.json_values import dump

PAGE = Path(__file__).with_name("page")
"""The folder with the page: HTML, style and scripts."""


def make_app(served: Served, watcher: Watcher, names: Iterable[str] = ()) -> Starlette:
    """Returns the application. ``names`` are the host names by which it may be called, beside localhost."""
    pages = _Pages(served, watcher)
    routes = [
        Route("/api/streams", pages.streams),
        Route("/api/describe", pages.describe),
        Route("/api/why", pages.why),
        Route("/api/live", pages.live),
        Route("/metrics", pages.metrics),
        *(_file_route(file) for file in sorted(PAGE.iterdir()) if file.is_file()),
    ]
    return Starlette(
        routes=routes, middleware=[Middleware(Guard, names=tuple(names))], exception_handlers={RowtimeError: _error}
    )


def _file_route(file: Path) -> Route:
    """Answers with a file of the page, from memory: reading it again each time delays the first lanes."""
    content, kind = file.read_bytes(), guess_type(file.name)[0]

    async def answer(request: Request) -> Response:
        del request
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return Route("/" if file.name == "index.html" else f"/{file.name}", answer)


class _Pages:
    """What each address answers."""

    def __init__(self, served: Served, watcher: Watcher) -> None:
        self._served, self._watcher = served, watcher
        self._read, self._why = SharedCalls(read_shown), SharedCalls(served.why)
        self._registry = registry_of(served, self._read)

    async def streams(self, request: Request) -> Response:
        del request
        return _json({"streams": await run_in_threadpool(self._served.paths), "tables": self._served.tables})

    async def describe(self, request: Request) -> Response:
        path = _named(request, await run_in_threadpool(self._served.paths))
        return _json(shown(await run_in_threadpool(self._read, path)))

    async def why(self, request: Request) -> Response:
        served, at = await run_in_threadpool(self._served.paths), request.query_params.get("at")
        path = _named(request, [*served, *self._served.tables])
        return _json((await run_in_threadpool(self._why, path, at)).toJson())

    async def live(self, request: Request) -> Response:
        del request
        if self._watcher.full:
            return _json({"error": "As many look at these streams as may. Try again.", "kind": "Busy"}, 503)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._watcher.events(), media_type="text/event-stream", headers=headers)

    async def metrics(self, request: Request) -> Response:
        del request
        return Response(await run_in_threadpool(generate_latest, self._registry), media_type=CONTENT_TYPE_LATEST)


def _named(request: Request, paths: list[str]) -> str:
    """Returns which of the paths a request names: the only one if it names none."""
    named = request.query_params.get("stream")
    if named in paths:
        return named
    if named is None and len(paths) == 1:
        return paths[0]
    what = "Several streams or tables are served" if named is None else f"{named!r} is not served here"
    raise StreamNotFoundError(f"{what}. Name one of /api/streams, as ?stream=PATH.", path=str(named))


def _json(value: Any, status: int = 200) -> Response:
    return Response(dump(value), status, {"Cache-Control": "no-store"}, "application/json")


def _error(request: Request, error: Exception) -> Response:
    del request
    status = 400 if isinstance(error, InvalidOptionError) else 404 if isinstance(error, StreamNotFoundError) else 503
    return _json({"error": str(error), "kind": type(error).__name__}, status)


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


_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._~-]+))(?::\d{0,5})?")
"""A name or an address, and maybe a port. Nothing stands before it, as a user does in a URL, or behind it."""


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
        found = _HOST.fullmatch(host.lower())
        return found is not None and (found["name"] in self._names or _is_address(found["address"] or found["name"]))


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

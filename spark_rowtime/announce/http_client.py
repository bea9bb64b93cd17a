"""HttpClient: one HTTP request at a time, with a time limit; what fails is a NotTakenError without secrets."""

import logging
import re
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from spark_rowtime.announce.target import LOG, NotTakenError
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.extras import import_extra
from spark_rowtime.types.hidden import hide

LONGEST_WAIT_SECONDS = 3600.0
"""The longest time for which a server may ask to be left alone."""
_TOO_LATE = "no answer within the time limit"
_SHOWN_CHARACTERS = 300
"""How much an error shows of an answer, or of what is wrong with it."""
_READ_BYTES = 16 << 20
_TEMPORARY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
_CONNECTION = re.compile(r"^\w+\(host=.*?\): ")
"""What urllib3 begins its errors with."""
_SPACES = re.compile(r"\s+")


class HttpClient:
    """Sends requests. A status other than 2xx, a time limit that has passed and a lost connection are NotTakenError.

    ``secrets`` are texts that no error and no log line may show.
    """

    def __init__(self, timeout: float, secrets: list[str]) -> None:
        self.secrets, self._warned = secrets, False
        self._urllib3 = import_extra("urllib3", "announce", "An announcement over HTTP")
        limit = self._urllib3.Timeout(connect=timeout, read=timeout)
        self._pool = self._urllib3.PoolManager(timeout=limit, retries=False, maxsize=1)
        self._deadline = _Deadline(timeout)
        self._pool.pool_classes_by_scheme = {
            scheme: self._deadline.watching(pool) for scheme, pool in self._pool.pool_classes_by_scheme.items()
        }
        self._filter = _Hiding(secrets)
        logging.getLogger("urllib3.connectionpool").addFilter(self._filter)

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        hidden: Iterable[str] = (),
    ) -> str:
        """Sends a request, and returns the first part of the answer's body; nothing of one that cannot be decoded.

        ``hidden``: what no error of this request may show, besides the secrets.
        """
        request = self._hidden(f"{method} {place(url)}")
        self._warn_of(url)
        text, hidden = "", [*self.secrets, *hidden]
        try:
            with self._deadline:
                response = self._pool.request(
                    method, url, headers=dict(headers), body=body, redirect=False, preload_content=False
                )
                with response, suppress(self._urllib3.exceptions.DecodeError):
                    text = response.read(_READ_BYTES, decode_content=True).decode(errors="replace")
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            reason = _TOO_LATE if self._deadline.passed else _reason(error)
            raise NotTakenError(f"{request}: {_excerpt(reason, hidden)}", temporary=True) from None
        if self._deadline.passed:
            raise NotTakenError(f"{request}: {_TOO_LATE}", temporary=True)
        if response.status // 100 == 2:
            return text
        raise _refused(request, response, _excerpt(text, hidden))

    def _warn_of(self, url: str) -> None:
        """Warns once of secrets that whoever is on the way can read."""
        if not self._warned and self.secrets and _is_open(url):
            self._warned = True
            LOG.warning(
                "Secrets are sent to %s without encryption: whoever is on the way can read them. Use https://.",
                self._hidden(place(url)),
            )

    def _hidden(self, text: str) -> str:
        return hide(text, self.secrets)

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()
        logging.getLogger("urllib3.connectionpool").removeFilter(self._filter)


def _excerpt(text: str, hidden: Iterable[str]) -> str:
    """The begin of a text that others wrote. Secrets are hidden before it is cut, so that no part of one is left."""
    return _SPACES.sub(" ", hide(text, hidden)).strip()[:_SHOWN_CHARACTERS]


def _refused(request: str, response: Any, excerpt: str) -> NotTakenError:
    status = response.status
    return NotTakenError(
        f"{request} was answered with status {status}{f': {excerpt}' if excerpt else ''}",
        temporary=status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _TEMPORARY,
        wait=wait_seconds(response.headers),
        status=status,
    )


class _Deadline:
    """The limit for a whole call. The limits of the client are for each part, and a server may send byte by byte."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self.passed = seconds, False
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def watching(self, pool: Any) -> Any:
        """The class of a pool whose connection can be cut."""

        def connect(connection: Any) -> None:
            pool.ConnectionCls.connect(connection)
            self._socket = connection.sock
            if self.passed:  # meanwhile
                self._cut()

        watched = type("Watched", (pool.ConnectionCls,), {"connect": connect})
        return type("WatchedPool", (pool,), {"ConnectionCls": watched})

    def __enter__(self) -> None:
        self.passed = False
        self._timer = threading.Timer(self._seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        assert self._timer is not None
        self._timer.cancel()

    def _cut(self) -> None:
        self.passed = True
        with suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)


def _is_open(url: str) -> bool:
    """Whether others can read the request on its way: plain HTTP to another machine."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


class _Hiding(logging.Filter):
    """Hides secrets in the log of urllib3, which has the path of each URL at level DEBUG."""

    def __init__(self, secrets: list[str]) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = hide(record.getMessage(), self._secrets), ()
        return True


def place(url: str) -> str:
    """Scheme, host and port of a URL: the path and the query may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _reason(error: Exception) -> str:
    import urllib3  # noqa: PLC0415

    errors = urllib3.exceptions
    if isinstance(error, errors.TimeoutError) and not isinstance(error, errors.NewConnectionError):
        return _TOO_LATE
    return _CONNECTION.sub("", str(error)) or type(error).__name__


def wait_seconds(headers: Mapping[str, str]) -> float:
    """The seconds that ``Retry-After`` asks for; 0 where it is neither a number nor a date.

    A date counts from the server's own ``Date``.
    """
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text), LONGEST_WAIT_SECONDS)
    until, now = _date(text), _date(headers.get("Date", ""))
    if until is None or now is None:
        return 0.0
    return min(max((until - now).total_seconds(), 0.0), LONGEST_WAIT_SECONDS)


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


def require_url(url: str, option: str) -> None:
    """Raises InvalidOptionError unless ``url`` is one of http or https, with a host and without a password."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        whole = False
    if not whole or not url.isprintable() or " " in url:
        raise InvalidOptionError(
            f"{option} needs a URL such as https://host.example.com/path after the kind.", option=option
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidOptionError(
            f"The URL for {parts.hostname} has a user or a password in it, which others can see. Put it "
            "into an environment variable, and give a header such as 'Authorization: Basic {env:CREDENTIALS}'.",
            option=option,
        )

"""HttpCall: one request for each complete period, with a URL, headers and a body from templates."""

import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from spark_rowtime.announce.http_client import HttpClient, require_url
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.target import NotTakenError
from spark_rowtime.announce.template import NAMES, Template
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.types.hidden import values_of

_JSON, _ONCE = "application/json", "idempotency-key"
_SAMPLE = {"start": "2026-01-05T14:00:00Z", "end": "2026-01-05T15:00:00Z", "key": "k", "stream": "s", "every": "1h"}
SECRET_WORDS = ("authorization", "cookie", "token", "secret", "password", "key")
"""Parts of the names of headers whose values are secret."""


class HttpCall:
    """Sends a request for each period. Values in the URL are percent-encoded, and values in JSON are escaped.

    The header ``Idempotency-Key`` is the same where a call is repeated. ``taken``: statuses that say, as 2xx does, that
    the target has the call.
    """

    def __init__(
        self,
        url: str,
        *,
        body: str | None,
        headers: Mapping[str, str],
        method: str,
        timeout: float,
        taken: frozenset[int],
    ) -> None:
        self._url, self._method, self._taken = Template(url, "to", blanks=False), method, taken
        self._headers = Headers(headers)
        self._json = _JSON in self._headers.fill(_SAMPLE).get("content-type", _JSON).lower()
        self._body = None if body is None else Template(body, "body")
        self._require_body()
        require_url(self._address(_SAMPLE), "to")
        secrets = [*self._url.secrets, *self._headers.secrets, *(self._body.secrets if self._body else [])]
        self._client = HttpClient(timeout, secrets)

    def announce(self, period: Period, call: str) -> None:
        """Sends the request."""
        fields = period.fields()
        headers, content = {_ONCE: call, **self._headers.fill(fields)}, self._content(fields)
        if content is not None and "content-type" not in headers:
            headers["content-type"] = _JSON
        address = self._address(fields)
        shown = {form for value in fields.values() for form in (value, quote(value, safe=""))}
        try:
            self._client.send(self._method, address, headers, content, set(values_of(address)) - shown)
        except NotTakenError as error:
            if error.status not in self._taken:
                raise

    def _address(self, fields: Mapping[str, str]) -> str:
        return self._url.fill(fields, lambda value: quote(value, safe=""), raw=True)

    def _content(self, fields: Mapping[str, str]) -> bytes | None:
        if self._method == "GET":
            return None
        if self._body is None:
            return json.dumps(fields).encode()
        return self._body.fill(fields, _in_json if self._json else str).encode()

    def _require_body(self) -> None:
        """Raises InvalidOptionError for a body that no request would have, or that is not JSON but is said to be."""
        if self._body is None:
            return
        if self._method == "GET":
            raise InvalidOptionError("A GET request has no body. Leave out body, or choose POST or PUT.", option="body")
        try:
            if self._json:
                json.loads(self._content(_SAMPLE) or b"")
        except ValueError as error:
            raise InvalidOptionError(
                f"body is not JSON once it is filled: {str(error).partition(':')[0]}. Write {{start}} and the like "
                "within quotation marks, or give a header such as 'Content-Type: text/plain'.",
                option="body",
            ) from None

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


class Headers:
    """Headers with templates as values. Names are in lower case."""

    def __init__(self, headers: Mapping[str, str], names: Sequence[str] = NAMES) -> None:
        """``names``: the placeholders that values may have besides those of environment variables."""
        self._values: dict[str, Template] = {}
        for name, value in headers.items():
            option = f"The header {name!r}"
            if not isinstance(name, str) or not name.isascii() or not name.replace("-", "").isalnum():
                raise InvalidOptionError(
                    f"{name!r} is not the name of a header. Such a name has letters, digits and '-', as in 'X-Team'.",
                    option="headers",
                    value=str(name),
                )
            if not isinstance(value, str) or not value.isprintable() or not value.isascii():
                raise InvalidOptionError(
                    f"{option} must have one line of ASCII text as its value.", option="headers", value=name
                )
            template = Template(value, option, names)
            if not all(secret.isascii() for secret in template.secrets):
                raise InvalidOptionError(
                    f"{option} gets characters that are not ASCII from an environment variable. Set it to ASCII text.",
                    option="headers",
                )
            self._values[name.lower()] = template

    def __contains__(self, name: str) -> bool:
        return name in self._values

    @property
    def secrets(self) -> list[str]:
        """The values that no error may show."""
        named = [value.text for name, value in self._values.items() if is_secret(name)]
        return [*named, *(secret for value in self._values.values() for secret in value.secrets)]

    def fill(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The headers for a period."""
        return {name: value.fill(fields, _in_header) for name, value in self._values.items()}


def is_secret(name: str) -> bool:
    """Whether a header of this name holds a secret."""
    return any(word in name.lower() for word in SECRET_WORDS)


def _in_header(value: str) -> str:
    """Headers are ASCII: other text, as of a path or a key, is percent-encoded."""
    return value if value.isascii() and value.isprintable() else quote(value)


def _in_json(value: str) -> str:
    return json.dumps(value)[1:-1]

"""AirflowAsset: an event of an asset of Apache Airflow 3 for each complete period, with its partition key."""

import json
import os
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from spark_rowtime.announce.http_call import Headers
from spark_rowtime.announce.http_client import HttpClient, require_url
from spark_rowtime.announce.period import Period
from spark_rowtime.announce.target import NotTakenError
from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.periods import Unit
from spark_rowtime.types.json_values import load

KEY = "%Y-%m-%dT%H:%M:%S"
"""The form of partition keys that Airflow's CronPartitionTimetable has by default."""
USER, PASSWORD = "AIRFLOW_USERNAME", "AIRFLOW_PASSWORD"
"""The environment variables for a login."""
_JSON = {"content-type": "application/json", "accept": "application/json"}
_PAGE = 20


class AirflowAsset:
    """Creates asset events by Airflow's public REST API (``POST /api/v2/assets/events``).

    The asset is found by its name, or by its URI. Requests carry the header ``Authorization`` that was given.
    Otherwise a token is requested, with the user and the password in the environment, or without them from an Airflow
    that lets everybody in, and again when it is no longer accepted.
    """

    merges = True

    def __init__(self, url: str, asset: str, *, headers: Mapping[str, str], timeout: float) -> None:
        require_url(url, "to")
        self._base, self._asset = url.rstrip("/"), asset
        self._headers = Headers(headers, names=())
        self._login = _login()
        self._token: str | None = None
        self._id: int | None = None
        self._client = HttpClient(timeout, [*self._headers.secrets, *self._login.values()])

    @staticmethod
    def default_key(unit: Unit) -> str:  # noqa: ARG004
        """The same for all periods."""
        return KEY

    def announce(self, period: Period, call: str) -> None:  # noqa: ARG002
        """Creates the event."""
        known = self._id is not None
        try:
            self._create(period)
        except NotTakenError as error:
            if error.status != HTTPStatus.NOT_FOUND or not known:
                raise
            self._id = None  # the asset was deleted and created again
            self._create(period)

    def _create(self, period: Period) -> None:
        fields = period.fields()
        extra = {name: fields[name] for name in ("start", "end", "stream", "every")}
        if self._id is None:
            self._id = self._found()
        self._call("POST", "/api/v2/assets/events", {"asset_id": self._id, "partition_key": period.key, "extra": extra})

    def _found(self) -> int:
        """The number of the asset; an asset that Airflow does not have may come with the next DAG that it reads."""
        for number, names in self._assets():
            if self._asset in names:
                return number
        raise NotTakenError(
            f"Airflow has no active asset with the name or URI {self._asset!r}. Assets come from DAG files: one must "
            "name it, as an outlet or in its schedule",
            temporary=True,
        )

    def _assets(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """The numbers, names and URIs of the assets whose name or URI is similar."""
        pattern = "uri_pattern" if "://" in self._asset else "name_pattern"
        offset = 0
        while True:
            query = urlencode({pattern: self._asset, "limit": _PAGE, "offset": offset})
            page = self._call("GET", f"/api/v2/assets?{query}")
            try:
                found = [(int(asset["id"]), (asset["name"], asset["uri"])) for asset in page["assets"]]
                offset, last = offset + len(found), int(page["total_entries"])
            except (LookupError, TypeError, ValueError):
                raise _no_airflow("GET /api/v2/assets") from None
            yield from found
            if not found or offset >= last:
                return

    def _call(self, method: str, path: str, content: Any = None) -> dict[str, Any]:
        renewable = self._token is not None
        try:
            return self._send(method, path, self._authorised(), content)
        except NotTakenError as error:
            if error.status != HTTPStatus.UNAUTHORIZED or not renewable:
                raise
            self._token = None
            return self._send(method, path, self._authorised(), content)

    def _authorised(self) -> dict[str, str]:
        headers = self._headers.fill({})
        if "authorization" not in self._headers:
            self._token = self._token or self._new_token()
            headers["authorization"] = f"Bearer {self._token}"
        return headers

    def _new_token(self) -> str:
        """A token of the auth manager: with user and password, or without them if it lets everybody in."""
        answer = self._send(
            "POST" if self._login else "GET", "/auth/token", self._headers.fill({}), self._login or None
        )
        token = str(answer.get("access_token") or answer.get("jwt_token") or "")
        if not token:
            raise NotTakenError(
                "Airflow's /auth/token has returned no token: check the user, and that this is the address of Airflow",
                temporary=False,
            )
        self._client.secrets.append(token)
        return token

    def _send(self, method: str, path: str, headers: Mapping[str, str], content: Any) -> dict[str, Any]:
        body = None if content is None else json.dumps(content).encode()
        answer = self._client.send(method, self._base + path, {**_JSON, **headers}, body)
        try:
            return dict(load(answer))
        except (ValueError, TypeError):
            raise _no_airflow(f"{method} {path.partition('?')[0]}") from None

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()


def _no_airflow(request: str) -> NotTakenError:
    return NotTakenError(
        f"{request} was not answered as Airflow 3 does, so this is probably not Airflow: check the address",
        temporary=False,
    )


def _login() -> dict[str, str]:
    """User and password from the environment; empty without them."""
    user, password = os.environ.get(USER, ""), os.environ.get(PASSWORD, "")
    if bool(user) != bool(password):
        raise InvalidOptionError(
            f"Of {USER} and {PASSWORD} only one is set in the environment. Set both, or neither.", option="to"
        )
    return {"username": user, "password": password} if user else {}

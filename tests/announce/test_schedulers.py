"""The requests to Airflow and Dagster, against servers that accept what their documented APIs accept, and no more."""

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import spark_rowtime as rt
from spark_rowtime.announce.announcer import announcements
from tests.announce.server import Asked, Say, Server, serving
from tests.announce.streams import more, stream_with


def announce(path: str, to: str, every: str = "1 h", tz: str | None = None, **options: Any) -> list[str]:
    periods = announcements(path, to, every, tz, "earliest", False, "test", options, (1.0, 2.0), lambda _: None)
    return [period.key for period in periods]


class Airflow:
    """The part of Airflow 3's public API that is used: tokens, assets, asset events. Bodies are strict, as there."""

    def __init__(self, everybody: bool = False) -> None:
        self.assets = {4: ("other_orders_x", "x-orders://x"), 7: ("orders", "s3://bucket/orders")}
        self.events: list[tuple[int, str | None, dict[str, Any]]] = []
        self.valid, self.tokens, self.everybody = set[str](), 0, everybody

    def __call__(self, asked: Asked) -> Say:
        url = urlsplit(asked.path)
        if url.path == "/auth/token":
            return self._token(asked)
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.valid:
            return self._say(401, {"detail": "Invalid JWT token"})
        if (asked.method, url.path) == ("GET", "/api/v2/assets"):
            return self._assets(parse_qs(url.query))
        if (asked.method, url.path) == ("POST", "/api/v2/assets/events"):
            return self._event(asked.json)
        return self._say(404, {"detail": "Not Found"})

    def _token(self, asked: Asked) -> Say:
        right = self.everybody if asked.method == "GET" else asked.json == {"username": "joe", "password": "pw"}
        if not right:
            return self._say(401, {"detail": "Invalid credentials"})
        self.tokens += 1
        self.valid.add(f"token{self.tokens}")
        return self._say(201, {"access_token": f"token{self.tokens}"})

    def _assets(self, query: dict[str, list[str]]) -> Say:
        """As a server with a largest page of one."""
        (pattern,), (offset,) = query.get("name_pattern") or query["uri_pattern"], query["offset"]
        found = [
            {"id": number, "name": name, "uri": uri, "group": "asset"}
            for number, (name, uri) in self.assets.items()
            if re.search(pattern, name if "name_pattern" in query else uri, re.IGNORECASE)
        ]
        return self._say(200, {"assets": found[int(offset) : int(offset) + 1], "total_entries": len(found)})

    def _event(self, body: dict[str, Any]) -> Say:
        right = body.keys() <= {"asset_id", "partition_key", "extra"} and type(body["asset_id"]) is int
        if not right or not isinstance(body.get("extra", {}), dict) or len(body["partition_key"]) > 250:
            return self._say(422, {"detail": "unprocessable"})
        if body["asset_id"] not in self.assets:
            return self._say(404, {"detail": "Asset was not found"})
        self.events.append((body["asset_id"], body["partition_key"], body["extra"]))
        return self._say(200, {"id": len(self.events), "asset_id": body["asset_id"]})

    @staticmethod
    def _say(status: int, content: dict[str, Any]) -> Say:
        return Say(status, json.dumps(content).encode())


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_USERNAME", "joe")
    monkeypatch.setenv("AIRFLOW_PASSWORD", "pw")


@pytest.mark.parametrize("asset", ["orders", "s3://bucket/orders"])
@pytest.mark.usefixtures("login")
def test_airflow_gets_an_event_with_the_partition_key_of_each_hour(asset: str) -> None:
    path, airflow = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Airflow()
    with serving(airflow) as server:
        announce(path, f"airflow:{server.url}/", asset=asset)
    extra = {"start": "2026-01-05T09:00:00Z", "end": "2026-01-05T10:00:00Z", "stream": path, "every": "1h"}
    assert airflow.events[0] == (7, "2026-01-05T09:00:00", extra)
    assert [key for _, key, _ in airflow.events] == ["2026-01-05T09:00:00", "2026-01-05T10:00:00"]
    assert airflow.tokens == 1


@pytest.mark.usefixtures("login")
def test_a_token_that_has_ended_is_renewed_and_an_asset_that_was_made_again_is_found() -> None:
    path, airflow = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Airflow()
    with serving(airflow) as server:
        for number, _ in enumerate(
            announcements(path, f"airflow:{server.url}", "1 h", None, "earliest", False, None, {"asset": "orders"})
        ):
            if number == 0:
                airflow.valid.clear()
                airflow.assets[8] = airflow.assets.pop(7)
    assert [(number, key[11:13]) for number, key, _ in airflow.events if key] == [(7, "09"), (8, "10")]
    assert airflow.tokens == 2


def test_a_header_for_the_authorisation_takes_the_place_of_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "given")
    path, airflow = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Airflow()
    airflow.valid.add("given")
    headers = {"Authorization": "Bearer {env:TOKEN}"}
    with serving(airflow) as server:
        announce(path, f"airflow:{server.url}", asset="orders", headers=headers)
        airflow.valid.clear()
        more(path, bound="2026-01-05T12:00:00Z")
        with pytest.raises(rt.AnnouncementError, match="status 401") as caught:
            announce(path, f"airflow:{server.url}", asset="orders", headers=headers)
    assert len(airflow.events) == 2
    assert "given" not in str(caught.value)
    assert airflow.tokens == 0


def test_an_airflow_that_lets_everybody_in() -> None:
    path, airflow = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Airflow(everybody=True)
    with serving(airflow) as server:
        assert len(announce(path, f"airflow:{server.url}", asset="orders")) == 2


def test_wrong_credentials_are_an_error_that_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_USERNAME", "joe")
    path = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z")
    with serving(Airflow()) as server:
        with pytest.raises(rt.InvalidOptionError, match="only one is set in the environment"):
            announce(path, f"airflow:{server.url}", asset="orders")
        monkeypatch.setenv("AIRFLOW_PASSWORD", "wr0ng")
        with pytest.raises(rt.AnnouncementError, match=r"status 401: .*Invalid credentials") as caught:
            announce(path, f"airflow:{server.url}", asset="orders")
    assert "wr0ng" not in str(caught.value)


@pytest.mark.usefixtures("login")
def test_an_asset_that_airflow_does_not_have_is_waited_for_and_then_named() -> None:
    path = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z")
    with (
        serving(Airflow()) as server,
        pytest.raises(rt.AnnouncementError, match="no active asset with the name or URI 'order'") as caught,
    ):
        announce(path, f"airflow:{server.url}", asset="order")
    assert caught.value.values["attempts"] == 3


NO_ASSETS = [
    "null",
    "7",
    '["a"]',
    "[{}]",
    '[{"id": null, "name": "orders", "uri": ""}]',
    '[{"id": 1, "name": "x", "uri": ""}]',
]


@pytest.mark.parametrize("answer", ["<html>", "[1]", "5", "{}", *(f'{{"assets": {found}}}' for found in NO_ASSETS)])
def test_what_is_no_airflow_is_named(server: Server, answer: str) -> None:
    path = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z")
    server.script.append(Say(200, answer.encode()))
    with pytest.raises(rt.AnnouncementError, match="probably not Airflow"):
        announce(path, f"airflow:{server.url}", asset="orders", headers={"Authorization": "x"})


def test_airflow_may_have_much_to_say_of_each_asset() -> None:
    path, airflow = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Airflow(everybody=True)
    airflow.assets = {n: (f"orders{'x' * 200_000}{n}", "") for n in range(8, 40)} | airflow.assets
    with serving(airflow) as server:
        assert len(announce(path, f"airflow:{server.url}", asset="orders")) == 2


@pytest.mark.usefixtures("login")
def test_airflows_key_has_no_offset_so_two_local_hours_of_that_key_are_one_event() -> None:
    path, airflow = stream_with("2026-10-24T23:30:00Z", bound="2026-10-25T03:00:00Z"), Airflow()
    with serving(airflow) as server:
        announce(path, f"airflow:{server.url}", tz="Europe/Berlin", asset="orders")
    keys = [key for _, key, _ in airflow.events]
    assert keys == ["2026-10-25T01:00:00", "2026-10-25T02:00:00", "2026-10-25T03:00:00"]
    assert airflow.events[1][2]["end"] == "2026-10-25T03:00:00+01:00"


class Dagster:
    """Dagster's endpoint for materializations: the content type must be exactly that of JSON. It takes any asset.

    Which assets there are, with the keys of their partitions, its GraphQL endpoint says, in the form of Dagster 1.13.
    ``graphql`` is an answer in its place.
    """

    def __init__(self, graphql: Say | None = None) -> None:
        self.reports: list[tuple[str, str]] = []
        self.graphql = graphql
        keys = ["2026-01-05-00:00", "2026-01-05-01:00"]
        self.assets = {"sales/orders": keys, "orders": keys, "a": keys, "daily": ["2026-01-05"], "whole": []}

    def _node(self, asked: Asked) -> Say:
        if self.graphql is not None:
            return self.graphql
        query, path = asked.json["query"], asked.json["variables"]["path"]
        assert re.search(r"assetNodeOrError\(\s*assetKey:\s*{\s*path:\s*\$path\s*}\s*\)", query)
        assert re.search(r"partitionKeysByDimension\(\s*startIdx:\s*0,\s*endIdx:\s*1\s*\)", query)
        found = self.assets.get("/".join(path))
        if found is None:
            return Say(200, b'{"data": {"assetNodeOrError": {"__typename": "AssetNotFoundError"}}}')
        dimensions = [{"partitionKeys": found[:1]}] if found else []
        node = {"__typename": "AssetNode", "partitionKeysByDimension": dimensions}
        return Say(200, json.dumps({"data": {"assetNodeOrError": node}}).encode())

    def __call__(self, asked: Asked) -> Say:
        prefix = "/report_asset_materialization/"
        if (asked.method, asked.path) == ("POST", "/graphql"):
            return self._node(asked)
        if asked.method != "POST" or not asked.path.startswith(prefix):
            return Say(404)
        if asked.headers.get("content-type") != "application/json":
            return Say(400, b'{"error": "Unhandled content type"}')
        body = asked.json
        known = body.keys() <= {"asset_key", "data_version", "metadata", "description", "partition"}
        if not known or not all(isinstance(value, str) for value in body["metadata"].values()):
            return Say(400, b'{"error": "Error constructing AssetMaterialization"}')
        self.reports.append((asked.path.removeprefix(prefix), body["partition"]))
        return Say(200, b"{}")


@pytest.mark.parametrize(
    ("every", "partitions"),
    [
        ("1 h", ["2026-01-05-09:00", "2026-01-05-10:00"]),
        ("1 day", ["2026-01-05"]),
        ("1 week", ["2026-01-05"]),
        ("1 month", ["2026-01-01"]),
    ],
)
def test_dagster_gets_the_partition_keys_of_its_own_partitions(every: str, partitions: list[str]) -> None:
    path, dagster = stream_with("2026-01-05T09:40:00Z", "2026-02-05T09:40:00Z", bound="2026-02-05T10:00:00Z"), Dagster()
    with serving(dagster) as server:
        announce(path, f"dagster:{server.url}", every, asset="sales/orders")
    assert dagster.reports[: len(partitions)] == [("sales/orders", partition) for partition in partitions]


def test_dagsters_second_hour_with_one_name_has_its_offset_in_the_key() -> None:
    path, dagster = stream_with("2026-10-24T23:30:00Z", bound="2026-10-25T03:00:00Z"), Dagster()
    with serving(dagster) as server:
        announce(path, f"dagster:{server.url}", tz="Europe/Berlin", asset="orders")
    found = [partition for _, partition in dagster.reports]
    assert found == ["2026-10-25-01:00", "2026-10-25-02:00", "2026-10-25-02:00+0100", "2026-10-25-03:00"]


def test_an_asset_that_dagster_does_not_have_is_waited_for_and_then_named() -> None:
    """Dagster takes a report of any asset."""
    path, dagster = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Dagster()

    def comes(seconds: float) -> None:
        if seconds == 2.0:
            dagster.assets["new"] = ["2026-01-05-00:00"]

    with serving(dagster) as server:
        with pytest.raises(rt.AnnouncementError, match=r"not taken in 3 attempt.*no asset 'sales/none'"):
            announce(path, f"dagster:{server.url}/", asset="sales/none")
        assert dagster.reports == []
        to, options = f"dagster:{server.url}", {"asset": "new"}
        list(announcements(path, to, "1 h", None, "earliest", False, "new", options, (1.0, 2.0), comes))
        assert [asked.path for asked in server.asked[3:]].count("/graphql") == 3, "it asks until the asset is there"
    assert dagster.reports == [("new", "2026-01-05-09:00"), ("new", "2026-01-05-10:00")]


@pytest.mark.parametrize(
    ("asset", "key", "warning"),
    [
        ("orders", None, ""),
        ("orders", "%Y-%m-%dT%H:%M:%S", "'2026-01-05-00:00', and '2026-01-05T09:00:00' is reported"),
        ("daily", None, "'2026-01-05', and '2026-01-05-09:00' is reported"),
        ("whole", None, "has no partitions, and '2026-01-05-09:00' is reported"),
    ],
)
def test_partition_keys_that_dagsters_asset_cannot_have_are_warned_of_once(
    caplog: pytest.LogCaptureFixture, asset: str, key: str | None, warning: str
) -> None:
    path, dagster = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Dagster()
    with serving(dagster) as server:
        announce(path, f"dagster:{server.url}", asset=asset, key=key)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(said) == (1 if warning else 0)
    assert all(warning in one for one in said)
    assert len(dagster.reports) == 2


@pytest.mark.parametrize("answer", [Say(404), Say(400, b'{"errors": []}'), Say(200, b"[]"), Say(200, b"no JSON")])
def test_a_dagster_that_does_not_say_which_assets_it_has_gets_the_reports(answer: Say) -> None:
    """Such as one behind a proxy that lets reports alone through."""
    path, dagster = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T11:00:00Z"), Dagster(answer)
    with serving(dagster) as server:
        announce(path, f"dagster:{server.url}", asset="unknown")
        assert [asked.path for asked in server.asked].count("/graphql") == 1
    assert len(dagster.reports) == 2


def test_dagster_plus_gets_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_TOKEN", "user:abc")
    path = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T10:00:00Z")
    with serving(Dagster()) as server:
        announce(path, f"dagster:{server.url}", asset="a", headers={"Dagster-Cloud-Api-Token": "{env:DAGSTER_TOKEN}"})
        assert {asked.headers["dagster-cloud-api-token"] for asked in server.asked} == {"user:abc"}


@pytest.mark.parametrize("kind", ["airflow", "dagster"])
def test_the_asset_must_be_named(kind: str) -> None:
    path = stream_with("2026-01-05T09:40:00Z", bound="2026-01-05T10:00:00Z")
    with pytest.raises(rt.InvalidOptionError, match="needs asset, the name of the asset"):
        announce(path, f"{kind}:http://localhost:1")

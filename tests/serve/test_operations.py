"""The dashboard and the alert rules of operations/: each query is one over the metrics that a server really has."""

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

import spark_rowtime as rt
from tests.serve.conftest import SCHEMA
from tests.serve.test_api import Serve, get, send
from tests.servers import KeptPort, ServerProcess
from tests.sparksession import wait_for

yaml: Any = pytest.importorskip("yaml")  # of mkdocs; it has no type hints
OPERATIONS = Path(__file__).parents[2] / "operations"
ALERTS = OPERATIONS / "prometheus-alerts.yml"
_NAME = re.compile(r"\browtime_\w+")
_LABELS = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"|\b(?:by|on|without|ignoring)\s*\(([^)]*)\)|\$labels\.(\w+)")


def panels() -> dict[str, str]:
    """The query of each panel, by its title, for all streams."""
    dashboard = json.loads((OPERATIONS / "grafana-dashboard.json").read_text())
    found = {panel["title"]: [target["expr"] for target in panel["targets"]] for panel in dashboard["panels"]}
    assert all(len(queries) == 1 for queries in found.values())
    return {title: query.replace("$stream", ".*").replace("$__rate_interval", "1m") for title, [query] in found.items()}


def rules() -> dict[str, dict[str, Any]]:
    """The alert rules, by their names."""
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


@pytest.fixture
def whole(tmp_path: Path) -> str:
    """A stream that has each metric: a bound, rows, late ones, a reader, a partition of Kafka."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, SCHEMA)
    send(path, "2026-01-05T10:00:00Z", "2026-01-05T11:00:00Z")
    partition = rt.openSink(path, producer="orders-0")
    partition.sendRowtimeBound("2026-01-05T11:00:00Z")
    partition.flush(checkpoint=json.dumps({"topicId": "x", "offset": 3, "end": 10}))
    partition.abandon()
    rt.openReader(path, name="lake").close()
    return path


def labels_of(text: str) -> dict[str, set[str]]:
    """The names of all metrics in the answer of a server, each with its labels."""
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    return {sample.name: set(sample.labels) for sample in samples}


def test_each_name_and_label_in_a_query_is_in_the_metrics(whole: str, serve: Serve) -> None:
    known = labels_of(get(serve(whole), "metrics").decode())
    texts = {**panels(), **{name: yaml.safe_dump(rule) for name, rule in rules().items()}}
    used = set()
    for title, text in texts.items():
        names = set(_NAME.findall(text))
        assert names, title
        assert names <= known.keys(), title
        labels = {
            part.strip() for found in _LABELS.findall(text) for part in ",".join(found).split(",") if part.strip()
        }
        assert labels <= set().union(*(known[name] for name in names)), title
        used |= names
    assert known.keys() - used == {"rowtime_stream_log_events_total", "rowtime_producer_rows_total"}


def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool here (Debian: apt-get install prometheus)")
    shutil.copy(ALERTS, tmp_path)
    cases = Path(__file__).with_name("alerts.yml").read_text()
    (tmp_path / "alerts.yml").write_text(cases.replace("Infx300", " ".join(["Inf"] * 301)))  # promtool repeats no Inf
    done = subprocess.run(
        ["promtool", "test", "rules", "alerts.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    fired = set(re.findall(r'alertname="(\w+)"', cases))
    assert fired == rules().keys()


class Prometheus:
    """A server of Prometheus that asks ``url`` for metrics each second, and evaluates the rules as often."""

    def __init__(self, folder: Path, port: KeptPort, url: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        job = {"job_name": "rowtime", "static_configs": [{"targets": [url.removeprefix("http://").rstrip("/")]}]}
        timing = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config = {"global": timing, "rule_files": [str(ALERTS)], "scrape_configs": [job]}
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self._server = ServerProcess("Prometheus", folder / "log")
        arguments = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        command = ["prometheus", *arguments, f"--web.listen-address=127.0.0.1:{port}"]
        self._server.start(command, lambda: "Server is ready" in self._server.log())

    def ask(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{what}", timeout=120) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.ask(f"query?query={quote(expression)}")["result"]
        return found

    def end(self) -> None:
        self._server.end()


@pytest.fixture
def prometheus(whole: str, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("there is no Prometheus here (Debian: apt-get install prometheus)")
    port = KeptPort()
    started = Prometheus(tmp_path_factory.mktemp("prometheus"), port, serve(whole).url)
    yield started
    started.end()
    port.close()


@pytest.mark.long
def test_prometheus_answers_each_panel_and_evaluates_each_rule(whole: str, prometheus: Prometheus) -> None:
    def more() -> bool:
        send(whole, "2026-01-05T12:00:00Z", "2026-01-05T12:00:01Z")
        return all(prometheus.query(query) for query in panels().values())

    wait_for(more, "data for each panel")
    for title, query in panels().items():
        assert {result["metric"].get("stream") for result in prometheus.query(query)} == {whole}, title
    wait_for(lambda: {rule["health"] for rule in evaluated(prometheus)} == {"ok"}, "each rule to be evaluated")
    assert {rule["name"] for rule in evaluated(prometheus)} == rules().keys()
    wait_for(lambda: prometheus.query('ALERTS{alertname="RowtimeRowsRejected", alertstate="firing"}'), "the alert")


def evaluated(prometheus: Prometheus) -> list[dict[str, Any]]:
    [group] = prometheus.ask("rules")["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found

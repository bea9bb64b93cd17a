"""A database that asks for a password and a bucket that asks for a key, in a cluster: neither secret shows anywhere."""

import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from tests.cluster.conftest import PASSWORD
from tests.cluster.driver import Driver, DriverFailedError
from tests.cluster.standalone import Cluster
from tests.cluster.test_cluster import COLUMNS, filled, numbers
from tests.postgresserver import PostgresServer
from tests.s3server import SECRET

pytestmark = pytest.mark.long

ROLE = "cluster_secretive"
PAGES = ("environment/", "executors/", "jobs/", "stages/", "SQL/", "SQL/execution/?id=0", "StreamingQuery/")
API = ("environment", "allexecutors", "jobs", "stages?withSummaries=true", "sql?length=1000&planDescription=true")


@pytest.mark.parametrize("location", ["s3"], indirect=True)
def test_no_secret_is_in_a_file_a_page_or_an_error(
    cluster: Cluster, driver: Driver, postgres: PostgresServer, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets, plans, logs of driver, master, workers and executors, Spark's event log, and its web interface."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with postgres.login(ROLE, PASSWORD):
        source, sink = (postgres.url(f"secrets/{name}", user=ROLE) for name in ("orders", "copied"))
        filled(source, location=location)
        rt.createStream(sink, COLUMNS, location=location)
        checkpoint = str(cluster.shared / "secrets")
        driver.call("copy", source, sink, checkpoint, {})
        assert numbers(sink) == [*range(20_000)]
        pages = dict(shown(driver))
        with open_store(source) as store:
            store.objects.remove(store.objects.sizes())
        with pytest.raises(DriverFailedError, match="is gone, although a commit names it") as caught:
            driver.call("copy", source, sink, f"{checkpoint}-gone", {})
    with pytest.raises(DriverFailedError, match="StoreUnavailableError") as refused:
        driver.call("rows", postgres.url("secrets/orders", user="nobody_known"))
    pages |= {"error": str(caught.value), "refused": str(refused.value)}
    assert all("MicroBatchScan" in pages[name] for name in (PAGES[-2], API[-1])), "these show plans"
    assert [name for name, text in pages.items() if SECRET in text or PASSWORD in text] == []
    assert files_with(cluster, SECRET, PASSWORD) == []


def shown(driver: Driver) -> Iterator[tuple[str, str]]:
    """The pages of the web interface, and what its API answers."""
    url, application = driver.call("web_interface")
    for path in (*PAGES, *(f"api/v1/applications/{application}/{name}" for name in API)):
        with urllib.request.urlopen(f"{url}/{path}", timeout=240) as answer:
            yield path.rpartition(application + "/")[2], answer.read().decode()


def files_with(cluster: Cluster, *secrets: str) -> list[str]:
    """The files of all machines, of the driver and of its checkpoints that have one of the secrets."""
    files: dict[Path, bytes] = {}
    for file in cluster.folder.rglob("*"):
        with suppress(FileNotFoundError):  # the cluster runs, and removes some
            if file.is_file():
                files[file] = file.read_bytes()
    assert {"driver.log", "log", "stderr", "offsets"} <= {
        part for file in files for part in (file.name, file.parent.name)
    }
    assert any(file.is_relative_to(cluster.driver / "events") and content for file, content in files.items())
    return [str(file) for file, content in files.items() if any(secret.encode() in content for secret in secrets)]

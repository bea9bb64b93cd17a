"""``rowtime announce``: what it prints, and which headers it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_rowtime.cli import main as command
from tests.announce.server import Server
from tests.announce.streams import stream_with


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["announce", *arguments])


def test_a_line_for_each_hour(tmp_path: Path) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T11:00:00Z", at=tmp_path)
    done = run(path, "--every", "1h", "--to", f"success-file:{tmp_path}/%Y-%m-%dT%H", "--from", "2006-09-11T10:10:00Z")
    assert done.output == f"{tmp_path}/2006-09-11T10  complete: 2006-09-11T10:00:00Z to 2006-09-11T11:00:00Z\n"
    assert (tmp_path / "2006-09-11T10" / "_SUCCESS").exists()


def test_where_nothing_is_new_it_says_what_the_stream_waits_for(tmp_path: Path) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T09:50:00Z", at=tmp_path)
    done = run(path, "--every", "1h", "--to", f"success-file:{tmp_path}/%Y-%m-%dT%H")
    assert done.exit_code == 0
    assert done.stdout == ""
    assert f"The bound of {path} is 2006-09-11T09:50:00Z, and waits for shop." in done.stderr


def test_headers_with_secrets_from_the_environment(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret")
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z", at=tmp_path)
    headers = ("--header", "Authorization: Bearer {env:TOKEN}", "--header", "X-Source: rowtime")
    done = run(path, "--every", "1h", "--to", server.url, *headers)
    assert done.exit_code == 0
    assert server.asked[0].headers["authorization"] == "Bearer s3cret"
    assert server.asked[0].headers["x-source"] == "rowtime"


@pytest.mark.parametrize("header", ["Authorization: Bearer s3cret", "X-Api-Key: s3cret", "s3cret", ": s3cret"])
def test_a_secret_among_the_arguments_is_refused_and_not_shown(tmp_path: Path, server: Server, header: str) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z", at=tmp_path)
    done = run(path, "--every", "1h", "--to", server.url, "--header", header)
    assert done.exit_code == 1
    assert "s3cret" not in done.output
    assert server.asked == []

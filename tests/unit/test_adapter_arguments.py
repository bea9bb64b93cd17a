"""Arguments of adapters: how they are passed, in which types, and that no error shows a value."""

import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Optional

import pytest
from click.testing import CliRunner, Result
from sample_feed import TwoShops

import spark_rowtime as rt
from spark_rowtime.adapter.arguments import from_texts, in_any_case
from spark_rowtime.adapter.process import AdapterProcess
from spark_rowtime.cli import main
from tests.landed import landed

SECRET = "hunter2"


class Feed:
    schema = "rowtime TIMESTAMP NOT NULL"

    def __init__(self, host: str, port: int = 9000, *, rate: "float | None" = None, tls: bool = True) -> None:
        self.given = (host, port, rate, tls)

    def run(self, sink: Any) -> None:
        """Sends nothing."""


class Positional:
    def __init__(self, plain, optional: Optional[int] = None, anything: Any = None) -> None:  # noqa: UP045
        """Takes keywords."""


class Columns:
    def __init__(
        self, columns: Mapping[str, str] | str | None = None, sizes: "dict[int | str, int] | None" = None
    ) -> None:
        """Takes a text for the first."""


class Open:
    def __init__(self, **settings: str) -> None:
        """Takes any keyword."""


class Since:
    def __init__(self, since: datetime) -> None:
        """Takes no text."""


@dataclass
class Fields:
    schema: ClassVar[str] = "rowtime TIMESTAMP NOT NULL"
    host: str
    port: int = 9000


def test_texts_become_the_types_of_the_annotations() -> None:
    texts = {"host": "a=b", "port": "9001", "rate": "0.5", "tls": "False"}
    assert from_texts(Feed, "my:Feed", texts) == {"host": "a=b", "port": 9001, "rate": 0.5, "tls": False}
    assert from_texts(Positional, "p", {"plain": "1", "optional": "1", "anything": "1"}) == {
        "plain": "1",
        "optional": 1,
        "anything": "1",
    }
    assert from_texts(Fields, "f", {"host": "h", "port": "1"}) == {"host": "h", "port": 1}
    assert from_texts(Columns, "c", {"columns": "shop=kafka.key"}) == {"columns": "shop=kafka.key"}
    assert from_texts(Open, "o", {"what": "ever"}) == {"what": "ever"}
    assert in_any_case(Feed, {"HOST": "h", "other": "o"}) == {"host": "h", "other": "o"}


@pytest.mark.parametrize(
    ("adapter", "texts", "error", "said"),
    [
        (Feed, {"hots": SECRET}, rt.UnknownOptionError, "no argument 'hots'. Did you mean 'host'? It has host, port,"),
        (Feed, {}, rt.InvalidOptionError, "needs host. Give it as rowtime run --set host=VALUE, beside a Spark"),
        (Feed, {"host": "", "port": SECRET}, rt.InvalidOptionError, "'port' of adapter 'my:Feed' must be a whole numb"),
        (Feed, {"host": "", "tls": SECRET}, rt.InvalidOptionError, "'tls' of adapter 'my:Feed' must be true or false"),
        (Since, {"since": SECRET}, rt.InvalidOptionError, "is annotated datetime.datetime, and cannot be given"),
        (Columns, {"sizes": SECRET}, rt.InvalidOptionError, "is annotated dict[int | str, int], and cannot be given"),
        (TwoShops, {"host": SECRET}, rt.UnknownOptionError, "It has none: its constructor takes no keywords."),
    ],
)
def test_a_wrong_argument_is_refused_and_its_value_is_not_shown(
    adapter: type, texts: dict[str, str], error: type[rt.RowtimeError], said: str
) -> None:
    with pytest.raises(error) as caught:
        from_texts(adapter, "my:Feed", texts)
    assert said in str(caught.value)
    assert SECRET not in f"{caught.value} {caught.value.values}"
    assert caught.value.__context__ is None, "a traceback would show the value"


def run(tmp_path: Path, *arguments: str) -> Result:
    path = str(tmp_path / "s.rowtime")
    return CliRunner().invoke(main, ["run", "sample_feed:Configured", path, "--create", *arguments])


def test_the_command_passes_arguments(tmp_path: Path) -> None:
    assert run(tmp_path, "--set", "first=7", "--set", f"password={SECRET}=x").exit_code == 0
    assert landed(str(tmp_path / "s.rowtime"), order="rowtime") == [7, len(SECRET) + 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", SECRET), "The --set number 1 is not of the form KEY=VALUE"),
        (("--set", f"password={SECRET}", "--set", f"password={SECRET}"), "--set password= is given twice"),
        (("--set", f"pasword={SECRET}"), "Did you mean 'password'?"),
        (("--set", f"first={SECRET}"), "must be a whole number"),
    ],
)
def test_the_command_refuses_wrong_arguments(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run(tmp_path, *arguments)
    assert (result.exit_code, said in result.stderr) == (1, True)
    assert SECRET not in result.output
    assert not (tmp_path / "s.rowtime").exists()


def test_a_python_call_passes_values_and_refuses_unknown_ones() -> None:
    rt.runAdapter(Feed, "memory://arguments", arguments={"host": "h", "rate": object()}, create=True)
    with pytest.raises(rt.UnknownOptionError, match="'hots'"):
        rt.runAdapter(Feed, "memory://arguments", arguments={"hots": "h"})


def test_options_of_the_sink_may_depend_on_an_argument() -> None:
    class Unordered(Feed):
        def __init__(self, lateness: str) -> None:
            self.sinkOptions = {"lateness": lateness}

        def run(self, sink: rt.RowSink) -> None:
            sink.sendRow(["2006-09-11T10:00:00Z"])
            bounds.append(sink.getRowtimeBound())

    bounds: list[rt.RowtimeBound | None] = []
    rt.runAdapter(Unordered, "memory://lateness", arguments={"lateness": "1 hour"}, create=True)
    assert bounds == [rt.RowtimeBound("2006-09-11T09:00:00Z")]


def test_a_child_process_gets_arguments_through_its_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, said = str(tmp_path / "s.rowtime"), io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL, n BIGINT")
    process = AdapterProcess(
        "sample_feed:Configured", path, {"password": f"{SECRET}\n" + "x" * 100_000, "first": "3", "wait": "true"}
    )
    with rt.openReader(path) as reader:
        while rt.describeStream(path).rows < 2:
            assert reader.read(timeout=240) is not None
    command = Path(f"/proc/{process.pid}/cmdline").read_text()
    process.stop()
    assert "sample_feed:Configured" in command
    assert SECRET not in command + said.getvalue()
    assert rt.describeStream(path).rows == 2

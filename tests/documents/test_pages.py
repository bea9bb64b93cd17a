"""The code on the pages runs as it stands, block after block, and prints what the pages say."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

import spark_rowtime as rt
from spark_rowtime.cli import main as command
from tests.documents.blocks import ROOT, blocks, inline_commands, shown_commands
from tests.sparksession import wait_for

DOCS = ROOT / "docs"
TUTORIAL, HOW_TO = (
    ["tutorial.md", "bounds.md", "coming-from.md", "cli.md", "metrics.md"],
    sorted((DOCS / "howto").glob("*.md")),
)
PAGES = [*(DOCS / name for name in TUTORIAL), *(page for page in HOW_TO if blocks(page))]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is wrong with each page: all run in one process, with one Spark session."""
    outcome, folder = tmp_path_factory.mktemp("outcome") / "wrong.json", tmp_path_factory.mktemp("pages")
    program = [sys.executable, "-m", "tests.documents.run_pages", str(outcome), *map(str, PAGES)]
    done = subprocess.run(
        program, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=560, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found: dict[str, str] = json.loads(outcome.read_text())
    return found


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_does_what_it_says(page: Path, wrong: dict[str, str]) -> None:
    assert wrong[str(page)] == ""


def test_the_programs_of_the_readme(tmp_path: Path) -> None:
    """The three are started as a reader would: the pipeline after the feed, consumers before it and after."""
    feed, pipeline, consumer = (block.code for block in blocks(ROOT / "README.md") if block.language == "python")
    text = (ROOT / "README.md").read_text()
    with _running(tmp_path, "consumer", consumer) as seen:
        subprocess.run([sys.executable, "-c", feed], cwd=tmp_path, env=ENVIRONMENT, check=True)
        with _running(tmp_path, "pipeline", pipeline):
            line = wait_for(lambda: _first_line(seen), "a line of the consumer")
            with _running(tmp_path, "later", consumer) as later:
                assert wait_for(lambda: _first_line(later), "a line of the consumer that came later") == line
    assert f"```text\n{line}```" in text


def _first_line(file: Path) -> str:
    """The first line, once it is whole."""
    return file.read_text().partition("\n")[0] + "\n" if "\n" in file.read_text() else ""


@contextmanager
def _running(folder: Path, name: str, code: str) -> Iterator[Path]:
    """A program in a process of its own; what it prints is in the file."""
    printed, program = folder / f"{name}.out", folder / f"{name}.py"
    program.write_text(code)
    with printed.open("w") as out, (folder / f"{name}.err").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(program)], cwd=folder, env=ENVIRONMENT, stdout=out, stderr=errors
        )
        try:
            yield printed
            assert process.poll() is None, (folder / f"{name}.err").read_text()[-5000:]
        finally:
            process.terminate()
            process.wait(240)


def test_the_commands_that_pages_show_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in blocks that do not run have names, arguments and options that the command line takes."""
    monkeypatch.setattr(click.Path, "convert", lambda *_: "a file")
    shown = [(page, words) for page in [*DOCS.rglob("*.md"), ROOT / "README.md"] for words in shown_commands(page)]
    assert len(shown) > 30
    for page, (name, *words) in shown:
        found = command.commands.get(name)
        assert found, f"{page}: rowtime {name}"
        found.make_context(f"{page}: rowtime {name}", words)


def test_the_options_of_commands_in_sentences_are_there() -> None:
    named = [
        (page, words)
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for words in inline_commands(page)
        if len(words) > 2 and words[1].islower()
    ]
    assert len(named) > 50
    for page, (_, name, *words) in named:
        found = command.commands.get(name)
        assert found, f"{page}: rowtime {name}"
        options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
        unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]
        assert not unknown, f"{page}: rowtime {name} {unknown}"


def test_every_public_name_is_in_the_reference() -> None:
    """An error has its row in the table of errors.md, what else there is its entry in api.md."""
    api, errors = (DOCS / "api.md").read_text(), (DOCS / "errors.md").read_text()
    for name in rt.__all__:
        told = f"| `{name}` |" in errors if name.endswith("Error") else f".{name}\n" in api
        assert told or name == "RowtimeError", name

"""Where the streams of a test that kills drivers are."""

from pathlib import Path

_DATABASE = "database"


def in_database(folder: Path, url: str) -> Path:
    """Says that the streams of the folder are in the database of that URL; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _DATABASE).write_text(f"{url}/{folder.parent.name}/{folder.name}")
    return folder


def stream_in(folder: Path, name: str) -> str:
    """The path of a stream of the folder: in it, or in the database that was said."""
    database = folder / _DATABASE
    return f"{database.read_text()}/{name}" if database.exists() else str(folder / f"{name}.rowtime")

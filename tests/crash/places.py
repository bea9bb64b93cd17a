"""Where the streams of a test that kills drivers are."""

import json
from pathlib import Path
from typing import Any

_PLACE = "place.json"
PLACES = {
    "directory": "",
    "postgresql": " over PostgreSQL",
    "folder": " over PostgreSQL, objects in a folder",
    "s3": " over PostgreSQL, objects on an S3 server",
}
"""Where streams and their rows are, and how the table says it."""


def in_database(folder: Path, url: str, location: str | None = None) -> Path:
    """Says that the streams of the folder are in the database of that URL, with that location; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    where = {"database": f"{url}/{folder.parent.name}/{folder.name}", "location": location}
    (folder / _PLACE).write_text(json.dumps(where))
    return folder


def stream_in(folder: Path, name: str) -> str:
    """The path of a stream of the folder: in it, or in the database that was said."""
    database = _said(folder, "database")
    return f"{database}/{name}" if database else str(folder / f"{name}.rowtime")


def location_of(folder: Path) -> str | None:
    """The location of the streams of the folder."""
    location: str | None = _said(folder, "location")
    return location


def _said(folder: Path, what: str) -> Any:
    place = folder / _PLACE
    return json.loads(place.read_text())[what] if place.exists() else None

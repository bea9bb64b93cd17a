"""A lake in the test's folder: where each format's table lies, with an Iceberg catalog in a file."""

from pathlib import Path

import pytest
from pyiceberg.utils.config import Config

from tests.tables.lake import Lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    made = Lake(tmp_path)
    for name, value in made.catalog.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it is read once, when the module is imported
    return made

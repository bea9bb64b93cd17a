"""Jars that Maven fetches for the tests are those that the file of checksums has."""

from pathlib import Path

import pytest

from scripts.mavenjars import CHECKSUMS, MissingJarsError, WrongJarError, check


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a jar of two bytes, whose checksum is known."""
    (tmp_path / "a.jar").write_bytes(b"ab")
    known = "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603"
    (tmp_path / "sums").write_text(f"{known}  set-1/a.jar\n")
    monkeypatch.setattr("scripts.mavenjars.CHECKSUMS", tmp_path / "sums")
    return tmp_path


def test_the_right_jars(jars: Path) -> None:
    check(jars, "set-1")


def test_a_jar_that_was_changed_and_one_more(jars: Path) -> None:
    (jars / "a.jar").write_bytes(b"abc")
    (jars / "b.jar").write_bytes(b"")
    with pytest.raises(WrongJarError, match=r"set-1/a\.jar, set-1/b\.jar"):
        check(jars, "set-1")


def test_a_set_that_nobody_has_looked_at_is_missing(jars: Path) -> None:
    with pytest.raises(MissingJarsError, match="no checksums for set-2"):
        check(jars, "set-2")


def test_every_line_is_one_checksum_of_one_jar() -> None:
    lines = [line.split() for line in CHECKSUMS.read_text().splitlines()]
    assert all(len(digest) == 64 and path.endswith(".jar") for digest, path in lines)
    assert len({path for _, path in lines}) == len(lines) > 50

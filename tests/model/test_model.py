"""The models: each promise holds, breaks without each of its rules, and is about something that occurs."""

import shutil

import pytest

from model.check import FOLDER, Line, Result, lines, results
from scripts.mavenjars import MissingJarsError

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")


def checked(name: str) -> list[Line]:
    try:
        return list(lines(results(FOLDER / name)))
    except MissingJarsError as error:
        pytest.skip(str(error))


@pytest.mark.long
def test_bounds_beside_a_topic() -> None:
    [line] = checked("offsets.als")
    assert line.is_right, str(line)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_folding() -> None:
    found = checked("folding.als")
    assert len(found) == 2
    assert [str(line) for line in found if not line.is_right] == []


@pytest.mark.night
@pytest.mark.timeout(1200)
def test_commits_leases_takeover_and_a_standby() -> None:
    found = checked("commits.als")
    assert len(found) == 8
    assert [str(line) for line in found if not line.is_right] == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"P": True, "P_without_R": True, "P_occurs": True}, "| P | BROKEN | 5 | R | yes |"),
        ({"P": False, "P_without_R": False, "P_occurs": True}, "| P | holds | 5 | R (NOT NEEDED) | yes |"),
        ({"P": False, "P_occurs": True}, "| P | holds | 5 | NONE | yes |"),
        ({"P": False, "P_without_R": True, "P_occurs": False}, "| P | holds | 5 | R | NEVER |"),
    ],
)
def test_what_proves_nothing_is_told(found: dict[str, bool], said: str) -> None:
    [line] = lines([Result(name, is_found, 5) for name, is_found in found.items()])
    assert (str(line), line.is_right) == (said, False)

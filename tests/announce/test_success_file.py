"""_SUCCESS files: whole or absent, in folders that a pattern names, also where local hours occur twice."""

import os
from pathlib import Path

import pytest

import spark_rowtime as rt
from spark_rowtime.announce.announcer import announcements
from tests.announce.streams import more, stream_with


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_file_in_the_folder_of_each_hour_and_in_no_other(tmp_path: Path) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T11:59:00Z")
    rt.announceTo(path, f"success-file:{tmp_path}/date=%Y-%m-%d/hour=%H", every="1 hour")
    assert files(tmp_path) == ["date=2006-09-11/hour=09/_SUCCESS", "date=2006-09-11/hour=10/_SUCCESS"]
    assert [(tmp_path / file).stat().st_size for file in files(tmp_path)] == [0, 0]


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    path, file = (
        stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z"),
        tmp_path / "2006-09-11T09" / "_SUCCESS",
    )
    file.parent.mkdir()
    file.write_text("by hand")
    os.utime(file, (1, 1))
    rt.announceTo(path, f"success-file:{tmp_path}/%Y-%m-%dT%H/", every="1 hour")
    assert (file.read_text(), file.stat().st_mtime) == ("by hand", 1)


def test_the_last_part_names_the_file_if_it_begins_with_an_underscore(tmp_path: Path) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-12T00:00:00Z")
    rt.announceTo(path, f"success-file:{tmp_path}/%Y-%m-%d/_COMPLETE", every="1 day")
    assert files(tmp_path) == ["2006-09-11/_COMPLETE"]


def test_a_home_folder_is_expanded_and_a_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-12T00:00:00Z")
    monkeypatch.setenv("HOME", str(tmp_path))
    rt.announceTo(path, "success-file:~/%Y-%m-%d", every="1 day")
    assert files(tmp_path) == ["2006-09-11/_SUCCESS"]
    with pytest.raises(rt.InvalidOptionError, match="is a URL, but _SUCCESS files are written to a file system"):
        rt.announceTo(path, "success-file:s3://bucket/%Y-%m-%d", every="1 day")


def test_a_folder_of_two_local_hours_is_marked_when_both_are_over(tmp_path: Path) -> None:
    path = stream_with("2026-10-25T00:30:00Z", bound="2026-10-25T01:30:00Z")
    to = f"success-file:{tmp_path}/%Y-%m-%d/%H"
    rt.announceTo(path, to, every="1 hour", tz="Europe/Berlin")
    assert files(tmp_path) == []
    more(path, bound="2026-10-25T02:00:00Z")
    rt.announceTo(path, to, every="1 hour", tz="Europe/Berlin")
    assert files(tmp_path) == ["2026-10-25/02/_SUCCESS"]


def test_a_pattern_with_the_offset_tells_the_two_apart(tmp_path: Path) -> None:
    path = stream_with("2026-10-25T00:30:00Z", bound="2026-10-25T02:00:00Z")
    rt.announceTo(path, f"success-file:{tmp_path}/%Y-%m-%dT%H%z", every="1 hour", tz="Europe/Berlin")
    assert files(tmp_path) == ["2026-10-25T02+0100/_SUCCESS", "2026-10-25T02+0200/_SUCCESS"]


@pytest.mark.parametrize(
    ("pattern", "every", "problem"),
    [
        ("%Y-%m-%d", "1 hour", "2023-01-01 00:00:00 and of 2023-01-01 01:00:00"),
        ("%H", "1 hour", "2023-01-01 00:00:00 and of 2023-01-02 00:00:00"),
        ("%m-%d", "1 day", "and of 2024-01-01"),
        ("%Y", "1 month", "and of 2023-02-01"),
        ("%G-%m-%d", "1 day", "2025-12-29 00:00:00 and of 2026-12-29 00:00:00"),
        ("%Y-%m-%dT%H", "15 min", "and of 2023-01-01 00:15"),
        ("%Y-%x", "1 day", "has %x, which is not one of %Y %m"),
        ("%Y-%m-%d%", "1 day", "has %, which is not one of"),
        ("out", "1 day", "2023-01-01 00:00:00 and of 2023-01-02"),
    ],
)
def test_a_pattern_that_does_not_tell_the_periods_apart_is_refused(pattern: str, every: str, problem: str) -> None:
    path = stream_with("2006-09-11T09:40:00Z", bound="2006-09-12T00:00:00Z")
    with pytest.raises(rt.InvalidOptionError, match=problem):
        rt.announceTo(path, f"success-file:{pattern}", every=every)
    assert rt.describeStream(path).readers == ()


def test_a_folder_that_cannot_be_made_is_an_error_at_once_and_the_hour_stays_the_next(tmp_path: Path) -> None:
    path, place = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z"), tmp_path / "out"
    place.write_text("a file in its way")
    to = f"success-file:{place}/%Y-%m-%dT%H"
    with pytest.raises(rt.AnnouncementError, match=r"_SUCCESS cannot be created: .*It stays the next one") as caught:
        rt.announceTo(path, to, every="1 hour")
    assert caught.value.values["attempts"] == 1
    place.unlink()
    assert rt.announceTo(path, to, every="1 hour") == 1


def test_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, waits, sync = stream_with("2006-09-11T09:40:00Z", bound="2006-09-11T10:00:00Z"), [], os.fsync

    def full(descriptor: int) -> None:
        if len(waits) < 2:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    to = f"success-file:{tmp_path}/%Y-%m-%dT%H"
    list(announcements(path, to, "1 h", None, "earliest", False, None, {}, wait=waits.append))
    assert waits == [1.0, 2.0]
    assert files(tmp_path) == ["2006-09-11T09/_SUCCESS"]

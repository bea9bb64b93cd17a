"""The periods of a table are announced by the bound that the table itself carries."""

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from click.testing import CliRunner

import spark_rowtime as rt
from spark_rowtime.announce.announcer import announcements
from spark_rowtime.cli import main as command
from spark_rowtime.store import open_store
from tests.announce.server import Say, Server, serving
from tests.sparksession import wait_for
from tests.tables.lake import FORMATS, Lake

SCHEMA = "rowtime TIMESTAMP NOT NULL, n INT"
DAY = "2026-01-05T{}:00Z"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


def more(lake: Lake, *times: str, bound: str | None = None, complete: bool = False) -> None:
    sink = rt.openSink(lake.stream, producer="shop", lateness="1000 days")
    sink.sendRows([(DAY.format(time), 1) for time in times])
    if bound is not None:
        sink.sendRowtimeBound(DAY.format(bound))
    sink.flush()
    if complete:
        sink.close(complete=True)
    else:
        sink.abandon()


def hours(lake: Lake, kind: str, **options: object) -> list[str]:
    """The hours that one run announces."""
    found: list[rt.Period] = []
    positions = str(lake.folder / "announced.rowtime")
    rt.announceTo(lake.target(kind), found.append, every="1 hour", positions=positions, **options)  # type: ignore[arg-type]
    return [f"{period.start:%H}" for period in found]


def drain_in_order_of_arrival(lake: Lake) -> None:
    with (
        rt.openReader(lake.stream, order="arrival") as reader,
        rt.openTableSink(lake.target("delta"), reader.schema) as to,
    ):
        reader.drainTo(to)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_bound_of_the_table_counts_and_not_that_of_the_stream(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", "10:20", bound="11:00")
    lake.drain(kind)
    more(lake, "12:10", bound="13:00")
    assert hours(lake, kind) == ["09", "10"], "the stream is at 13:00, and the table at 11:00"
    assert hours(lake, kind) == []
    lake.drain(kind)
    assert hours(lake, kind) == ["11", "12"]
    more(lake, "15:30", complete=True)
    lake.drain(kind)
    assert hours(lake, kind) == ["13", "14", "15"], "up to the last row"
    assert hours(lake, kind) == []
    assert hours(lake, kind, start=DAY.format("14:00"), name="other") == ["14", "15"]


def test_of_a_table_without_rows_or_of_an_earlier_version_it_begins_where_the_bound_is(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, bound="11:00")
    lake.drain("delta")
    assert hours(lake, "delta") == ["10"]
    assert hours(lake, "delta", start="latest", name="other") == []


def test_a_row_above_the_bound_is_not_the_first_while_earlier_ones_can_follow(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "14:10", bound="10:00")
    drain_in_order_of_arrival(lake)
    assert hours(lake, "delta") == []
    more(lake, "11:20", bound="12:00")
    drain_in_order_of_arrival(lake)
    assert hours(lake, "delta") == ["11"]


def test_a_bound_that_moves_back_with_the_table_announces_nothing_twice(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="10:00")
    lake.drain("delta")
    version = 1
    more(lake, "10:40", bound="12:00")
    lake.drain("delta")
    assert hours(lake, "delta") == ["09", "10", "11"]
    from deltalake import DeltaTable

    DeltaTable(f"{lake.folder}/delta").restore(version)
    assert hours(lake, "delta") == []


def test_the_name_tells_tables_apart_and_the_stream_of_positions_shows_them(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="11:00")
    for kind in ("delta", "parquet"):
        lake.drain(kind)
        assert hours(lake, kind) == ["09", "10"]
    readers = rt.describeStream(str(lake.folder / "announced.rowtime")).readers
    assert sorted(reader.name.rpartition("@")[2].partition(" of table ")[0] for reader in readers) == [
        lake.target("delta"),
        lake.target("parquet"),
    ]


def test_tables_of_one_relative_name_in_two_folders_are_two(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="11:00")
    for folder in ("berlin", "oslo"):
        (lake.folder / folder).mkdir()
        monkeypatch.chdir(lake.folder / folder)
        with rt.openReader(lake.stream) as reader, rt.openTableSink("delta:orders", reader.schema) as sink:
            reader.drainTo(sink)
        found: list[rt.Period] = []
        rt.announceTo("delta:orders", found.append, every="1 hour", positions="../announced.rowtime")
        assert len(found) == 2, folder


def test_what_is_missing_or_wrong_is_said(lake: Lake) -> None:
    rt.createStream(lake.stream, SCHEMA)
    with pytest.raises(rt.InvalidOptionError, match=r"so the position has to be kept elsewhere. Give positions"):
        rt.announceTo(lake.target("delta"), print, every="1 hour")
    with pytest.raises(rt.InvalidOptionError, match="is a stream, and keeps the position"):
        rt.announceTo(lake.stream, print, every="1 hour", positions=str(lake.folder / "p.rowtime"))
    with pytest.raises(rt.InvalidOptionError, match="clientOptions are those of Kafka's client"):
        rt.announceTo(lake.stream, print, every="1 hour", clientOptions={"a": "b"})
    with pytest.raises(rt.StoreUnavailableError, match="cannot be read"):
        hours(lake, "delta")


def test_a_stream_with_a_drain_is_warned_of(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="11:00")
    with rt.openReader(lake.stream, name="lake") as reader:
        reader.drainTo(rt.openTableSink(lake.target("delta"), reader.schema))
    rt.announceTo(lake.stream, str, every="1 hour")
    assert "has the readers 'lake'. If one of them drains it" in caplog.text
    caplog.clear()
    hours(lake, "delta")
    assert "has the readers" not in caplog.text


def test_with_follow_it_waits_for_the_table_also_while_that_cannot_be_read(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    """The waits are the test's: at each of them the drain goes on, or the table is away."""
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="10:00")
    lake.drain("delta")
    away, back = lake.folder / "away", lake.folder / "delta"

    def waits() -> Iterator[None]:
        more(lake, "10:40", bound="11:00")
        lake.drain("delta")
        back.rename(away)
        yield
        yield
        away.rename(back)
        yield
        more(lake, "11:30", complete=True)
        lake.drain("delta")
        yield

    script = waits()
    found = announcements(
        lake.target("delta"), str, "1 hour", None, "earliest", True, None, {}, (),
        lambda _: next(script), positions=str(lake.folder / "announced.rowtime"),
    )  # fmt: skip
    assert [f"{period.start:%H}" for period in found] == ["09", "10", "11"]
    assert caplog.text.count("is looked at again every 5 s") == 1


def made_again(lake: Lake, kind: str) -> None:
    """The table, with the hour from 8 to 9 alone."""
    if kind != "iceberg":
        shutil.rmtree(lake.folder / kind)
    else:
        from pyiceberg.catalog import load_catalog

        load_catalog("lake").drop_table("shop.orders")
    path = str(lake.folder / "other.rowtime")
    rt.createStream(path, SCHEMA)
    with rt.openSink(path, producer="shop") as sink:
        sink.sendRow((DAY.format("08:10"), 1))
        sink.sendRowtimeBound(DAY.format("09:00"))
    with rt.openReader(path) as reader, rt.openTableSink(lake.target(kind), reader.schema) as table:
        reader.drainTo(table)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_that_is_made_again_does_not_go_on_at_the_old_position(lake: Lake, kind: str) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="10:00")
    lake.drain(kind)
    script = iter([lambda: made_again(lake, kind)])
    following = announcements(
        lake.target(kind), str, "1 hour", None, "earliest", True, "nightly", {}, (),
        lambda _: next(script)(), positions=str(lake.folder / "announced.rowtime"),
    )  # fmt: skip
    assert f"{next(following).start:%H}" == "09"
    with pytest.raises(rt.DataLostError, match="was deleted and created again"):
        next(following)
    with pytest.raises(rt.DataLostError, match=r"Announce it under another name \(--name\)"):
        hours(lake, kind, name="nightly")
    assert hours(lake, kind, name="again") == ["08"]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_position_of_an_earlier_version_is_that_of_the_table(lake: Lake, kind: str) -> None:
    """It has no id in its name. It goes on, once."""
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="11:00")
    lake.drain(kind)
    assert hours(lake, kind) == ["09", "10"]
    with open_store(str(lake.folder / "announced.rowtime")) as kept:
        (reader,) = kept.snapshot().readers
        kept.keep(reader.name.partition(" of table ")[0], reader.position)
        kept.forget(reader.name)
    more(lake, "11:40", bound="12:00")
    lake.drain(kind)
    assert hours(lake, kind) == ["11"]
    assert [one.name for one in rt.describeStream(str(lake.folder / "announced.rowtime")).readers] == [reader.name]


def test_folders_that_get_their_id_while_they_are_announced_are_not_taken_for_others(lake: Lake) -> None:
    """An earlier version has drained into them, and a drain of this one goes on beside the announcer."""
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="10:00")
    lake.drain("parquet")
    file = lake.folder / "parquet" / "_rowtime" / "state.json"
    state = json.loads(file.read_text())
    del state["id"]
    file.write_text(json.dumps(state))

    def goes_on() -> None:
        more(lake, "10:40", bound="11:00")
        lake.drain("parquet")

    script = iter([goes_on])
    following = announcements(
        lake.target("parquet"), str, "1 hour", None, "earliest", True, "nightly", {}, (),
        lambda _: next(script)(), positions=str(lake.folder / "announced.rowtime"),
    )  # fmt: skip
    assert [f"{next(following).start:%H}" for _ in range(2)] == ["09", "10"]
    following.close()
    made_again(lake, "parquet")
    with pytest.raises(rt.DataLostError, match="was deleted and created again"):
        hours(lake, "parquet", name="nightly")


def test_an_announcer_waits_for_a_catalog_that_is_away(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """A folder where the catalog's file was stands for a server that does not answer."""
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="10:00")
    lake.drain("iceberg")
    catalog, away = lake.folder / "catalog.db", lake.folder / "away.db"

    def waits() -> Iterator[None]:
        catalog.rename(away)
        catalog.mkdir()
        yield
        yield
        catalog.rmdir()
        away.rename(catalog)
        more(lake, "10:40", complete=True)
        lake.drain("iceberg")
        yield

    script = waits()
    found = announcements(
        lake.target("iceberg"), str, "1 hour", None, "earliest", True, None, {}, (),
        lambda _: next(script), positions=str(lake.folder / "announced.rowtime"),
    )  # fmt: skip
    assert [f"{period.start:%H}" for period in found] == ["09", "10"]
    assert caplog.text.count("is looked at again every 5 s") == 1


@pytest.mark.long
def test_killed_before_or_after_the_answer_no_hour_is_left_out(lake: Lake, server: Server) -> None:
    """A process that announces the table, beside a drain that goes on; it is killed at calls, and started again."""
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "00:10", bound="01:00")
    lake.drain("delta")
    server.script.extend([Say(), Say(kill="before"), Say(), Say(), Say(kill="after"), Say()])
    program = [sys.executable, "-m", "spark_rowtime.cli", "announce", lake.target("delta"), "--every", "1h", "--follow"]
    program += ["--to", server.url, "--positions", str(lake.folder / "announced.rowtime")]
    done = threading.Event()

    def drain_on() -> None:
        for hour in range(2, 9):
            more(lake, f"{hour - 1:02}:30", bound=f"{hour:02}:00", complete=hour == 8)
            lake.drain("delta")
        done.set()

    threading.Thread(target=drain_on).start()
    codes = []
    while 0 not in codes:
        server.victim = (pid := Queue[int]()).get
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
            pid.put(process.pid)
            _, errors = process.communicate()
        codes.append(process.returncode)
        assert process.returncode in (0, -signal.SIGKILL), errors
    assert codes == [-signal.SIGKILL] * 2 + [0]
    wait_for(done.is_set, "the drain")
    asked = [int(one.json["key"][11:13]) for one in server.asked]
    assert sorted(set(asked)) == [*range(8)]
    assert asked == sorted(asked)
    assert len(asked) <= 8 + 2


def test_the_command(lake: Lake, tmp_path: Path) -> None:
    rt.createStream(lake.stream, SCHEMA)
    more(lake, "09:40", bound="11:00")
    lake.drain("parquet")
    arguments = [
        "announce",
        f"parquet:{lake.folder}/parquet",
        "--every",
        "1h",
        "--to",
        f"success-file:{tmp_path}/%Y-%m-%dT%H",
    ]
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, "Give positions (--positions)" in " ".join(done.output.split())) == (1, True)
    arguments += ["--positions", str(tmp_path / "announced.rowtime")]
    done = CliRunner().invoke(command, arguments)
    assert [line.partition("  ")[0] for line in done.output.splitlines()] == [
        f"{tmp_path}/2026-01-05T{hour}" for hour in ("09", "10")
    ]
    assert "No new period is complete." in CliRunner().invoke(command, arguments).output

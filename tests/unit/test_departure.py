"""How a producer goes: it is expected and never comes, it is complete, or somebody else closes or detaches it."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_cli import done, refused

import spark_rowtime as rt
from spark_rowtime.adapter.adapter import host
from spark_rowtime.admin.description import described
from spark_rowtime.cli import main
from spark_rowtime.store import open_store
from spark_rowtime.stream_info import waits_for
from tests.streams import at, bound, drained, opened, send

SCHEMA = "rowtime TIMESTAMP NOT NULL, k STRING"
BOTH = ["Berlin", "Oslo"]


@pytest.fixture(params=["memory", "local"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path}" if request.param == "memory" else str(tmp_path / "orders.rowtime")


def statuses(path: str) -> dict[str, str]:
    return {p.name: p.status.value for p in rt.describeStream(path).producers}


def feed(path: str, name: str, *clocks: str, **how: Any) -> None:
    sink = opened(path, name)
    send(sink, *((clock, name) for clock in clocks))
    sink.close(**how)


def test_feeds_one_after_another_lose_nothing(path: str) -> None:
    rt.createStream(path, SCHEMA, producers=BOTH)
    assert statuses(path) == {"Berlin": "expected", "Oslo": "expected"}
    feed(path, "Berlin", "10:00", "12:00")
    assert rt.describeStream(path).bound is None
    feed(path, "Oslo", "9:00", "11:00")
    info = rt.describeStream(path)
    assert (info.rows, info.rejected, info.bound) == (4, 0, bound("12:00"))
    with rt.openReader(path) as reader:
        assert [row[0] for row in drained(reader)] == ["09:00", "10:00", "11:00", "12:00"]


def test_without_it_the_later_ones_rows_are_late(path: str) -> None:
    rt.createStream(path, SCHEMA)
    feed(path, "Berlin", "12:00")
    with pytest.raises(rt.LateRowError):
        feed(path, "Oslo", "9:00")


def test_who_is_expected_is_said(path: str) -> None:
    rt.createStream(path, SCHEMA, producers=[*BOTH, "Berlin"])
    assert rt.describeStream(path).waitsFor == "'Berlin', 'Oslo' (expected, have not opened)"
    with opened(path, "Aarhus"), opened(path, "Berlin"):
        info = rt.describeStream(path)
        assert (info.holder, info.waitsFor) == ("Oslo", "'Oslo' (expected, has not opened)")
        assert waits_for(path, "Oslo", info.producers) == info.waitsFor, "as a query's progress says it"


@pytest.mark.parametrize("producers", ["Berlin", 3, [""], [3], None])
def test_names_are_a_list_of_names(path: str, producers: Any) -> None:
    if producers == [""]:
        return  # an empty name is a name everywhere
    with pytest.raises(rt.InvalidOptionError, match=r"producers must be a list of names|a name in producers"):
        rt.createStream(path, SCHEMA, producers=producers)


def test_an_expected_one_is_not_expired_by_time(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    rt.createStream(path, SCHEMA, producers=BOTH, idleTimeout="1 ms")
    with opened(path, "Berlin", lease="1 ms") as berlin:
        berlin.sendRowtimeBound(at("10:00"))
        berlin.flush()
        with rt.openReader(path) as reader:
            assert reader.read(timeout=0.05) is None
        assert statuses(path)["Oslo"] == "expected"


def test_the_end(path: str) -> None:
    rt.createStream(path, SCHEMA, producers=BOTH, maxAhead="1 day", boundsBeforeRows=False)
    feed(path, "Berlin", "10:00", complete=True)
    assert statuses(path)["Berlin"] == "complete"
    assert rt.describeStream(path).bound is None
    feed(path, "Oslo", "9:00", complete=True)
    info = rt.describeStream(path)
    assert info.bound == rt.RowtimeBound.END
    assert info.waitsFor == f"nobody: {path} is complete, no row follows"
    assert [p.bound for p in info.producers] == [rt.RowtimeBound.END] * 2
    with rt.openReader(path, follow=True, hold="1 hour") as follower:
        trains = list(follower)
    assert sum(train.rows.num_rows for train in trains) == 2, "following ends, and hold holds nothing any more"
    assert trains[-1].bound == rt.RowtimeBound.END
    for name, what in (("Oslo", "Producer 'Oslo' of .* is complete"), ("Paris", "The stream at .* is complete")):
        with pytest.raises(rt.StreamCompleteError, match=what):
            opened(path, name)
    assert statuses(path) == {"Berlin": "complete", "Oslo": "complete"}


def test_a_complete_producer_does_not_open_again_although_others_still_send(path: str) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "Oslo") as oslo:
        feed(path, "Berlin", "12:00", complete=True)
        with pytest.raises(rt.StreamCompleteError, match="Producer 'Berlin'"):
            opened(path, "Berlin")
        send(oslo, ("11:00", "o"), promise="11:30")
    assert rt.describeStream(path).bound == bound("12:00"), "Oslo has only left: it was the last one"
    feed(path, "Oslo", "13:00", complete=True)
    assert rt.describeStream(path).bound == rt.RowtimeBound.END


def test_no_time_is_the_end_but_the_bound_of_a_complete_stream_is_passed_on(path: str) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "a") as sink:
        for last in ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999998Z"):
            with pytest.raises(rt.InvalidOptionError):
                sink.sendRowtimeBound(last, strict=True)
    feed(path, "b", "10:00", complete=True)
    copy = path + "-copy"
    rt.createStream(copy, SCHEMA, maxAhead="1 day")
    with rt.openReader(path, follow=True) as reader, opened(copy, "copy") as sink:
        reader.drainTo(sink)
        assert statuses(copy) == {"copy": "complete"}
        with pytest.raises(rt.LateRowError):
            sink.sendRow((at("10:00"), "late"))
    assert rt.describeStream(copy).bound == rt.RowtimeBound.END


def test_another_consumer_gets_the_end_as_the_last_time_strict(path: str) -> None:
    rt.createStream(path, SCHEMA)
    feed(path, "a", "10:00", complete=True)

    class Consumer:
        def __init__(self) -> None:
            self.bounds: list[Any] = []

        def sendRows(self, rows: Any) -> None:
            pass

        def sendRowtimeBound(self, t: Any, strict: bool = False, tz: Any = None) -> None:
            self.bounds.append((t.isoformat(), strict))

    consumer = Consumer()
    with rt.openReader(path) as reader:
        reader.drainTo(consumer)
    assert consumer.bounds[-1] == ("9999-12-31T23:59:59.999998+00:00", True)


@pytest.mark.parametrize(("complete", "reached"), [(False, bound("10:30")), (True, rt.RowtimeBound.END)])
@pytest.mark.parametrize("before", ["attached", "detached", "left"])
def test_somebody_closes_a_lost_producer(path: str, before: str, complete: bool, reached: rt.RowtimeBound) -> None:
    rt.createStream(path, SCHEMA)
    lost = opened(path, "Berlin", rowsImplyBounds=False, lease=None)
    send(lost, ("10:30", "b"), promise="10:00")
    if before == "detached":
        assert rt.detachProducer(path, "Berlin") == bound("10:00")
    elif before == "left":
        lost.close()
    assert rt.closeProducer(path, "Berlin", complete=complete) == reached
    assert statuses(path) == {"Berlin": "complete" if complete else "left"}
    assert rt.closeProducer(path, "Berlin", complete=complete) == reached, "again: nothing"
    lost.abandon()


CALLS = {
    "sendRow": lambda sink: sink.sendRow((at("11:00"), "b")),
    "sendRows": lambda sink: sink.sendRows([(at("11:00"), "b")]),
    "sendRowtimeBound": lambda sink: sink.sendRowtimeBound(at("11:00")),
    "flush": lambda sink: sink.flush(),
    "flush(checkpoint)": lambda sink: sink.flush(checkpoint="here"),
}


def later(sink: Any) -> None:
    """An hour has passed for the sink, which has no lease."""
    now = sink._scheduler._now() + 3_600_000_000
    sink._scheduler._now = sink._scheduler.lease._now = lambda: now


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("resumes", [False, True])
def test_one_that_was_detached_joins_again_before_its_next_call_is_judged(
    path: str, call: str, resumes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "other") as other, opened(path, "quiet", lease=None) as quiet:
        if resumes:
            quiet.flush(checkpoint="start")
        send(quiet, ("10:00", "q"))
        send(other, ("10:30", "o"))
        rt.detachProducer(path, "quiet")
        later(quiet)
        CALLS[call](quiet)
        assert "'quiet' was detached by somebody else" in caplog.text
        assert "its rows before 2006-09-11T10:30:00Z are late now" in caplog.text
        send(other, ("12:00", "o"))
        assert rt.describeStream(path).holder == "quiet", "the stream waits for it again, before it has sent anything"
        quiet.sendRow((at("11:00"), "q"))
    assert rt.describeStream(path).rejected == 0


@pytest.mark.parametrize("call", ["sendRow", "sendRows"])
def test_the_row_that_is_late_now_is_refused_in_that_call(path: str, call: str) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "other") as other, opened(path, "quiet", lease=None) as quiet:
        send(quiet, ("10:00", "q"))
        send(other, ("11:30", "o"))
        rt.detachProducer(path, "quiet")
        later(quiet)
        with pytest.raises(rt.LateRowError, match="2006-09-11T11:30:00Z"):
            CALLS[call](quiet)
        assert quiet.getRowtimeBound() == bound("11:30")


def test_single_rows_between_two_flushes_learn_it_too(path: str) -> None:
    """The fast path, which looks at nothing but the row, ends after a while."""
    rt.createStream(path, SCHEMA)
    with opened(path, "other") as other, opened(path, "quiet", lease=None) as quiet:
        quiet.flush(checkpoint="start")
        quiet.sendRow((at("10:00"), "q"))
        quiet.sendRow((at("10:01"), "q"))
        rt.detachProducer(path, "quiet")
        send(other, ("9:30", "o"))
        later(quiet)
        quiet._scheduler.run_due()
        quiet.sendRow((at("10:02"), "q"))
        assert statuses(path)["quiet"] == "attached"


def test_looking_does_not_put_off_the_renewal_of_the_lease(path: str) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "busy", lease="30 hours") as busy:
        busy.flush(checkpoint="start")
        renewed: list[Any] = []
        note = busy._scheduler.lease.note
        busy._scheduler.lease.note = lambda result: (renewed.append(result), note(result))
        for clock in range(1, 12):
            with busy._lock:
                later(busy)
                busy.sendRow((at(f"{clock}:00"), "b"))
                busy._scheduler.run_due()
        assert renewed == [False], "after ten of thirty hours"


def test_one_that_only_renews_its_lease_is_told_in_its_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    rt.createStream(path, SCHEMA)
    with opened(path, "quiet", lease="10 hours") as quiet:
        rt.detachProducer(path, "quiet")
        for _ in range(2):
            with quiet._lock:
                later(quiet)
                later(quiet)
                later(quiet)
                later(quiet)
                quiet._scheduler.run_due()
        assert caplog.text.count("It joins again with its next call") == 1
        assert statuses(path)["quiet"] == "detached"


def test_one_that_sleeps_while_the_stream_becomes_complete_is_told(path: str) -> None:
    rt.createStream(path, SCHEMA)
    quiet = opened(path, "quiet", lease=None)
    rt.detachProducer(path, "quiet")
    feed(path, "other", "10:00", complete=True)
    later(quiet)
    with pytest.raises(rt.StreamCompleteError, match="every producer has declared"):
        quiet.sendRow((at("11:00"), "q"))
    quiet.close()


@pytest.mark.parametrize("complete", [False, True])
def test_a_process_that_lives_is_told_on_its_next_call(path: str, complete: bool) -> None:
    rt.createStream(path, SCHEMA, producers=["never"])
    for name, call in CALLS.items():
        sink = opened(path, name, lease=None)
        send(sink, ("10:00", "b"))
        rt.closeProducer(path, name, complete=complete)
        later(sink)
        with pytest.raises(rt.ProducerFencedError, match="was closed by somebody else"):
            call(sink)
        with pytest.raises(rt.ProducerFencedError):
            sink.close()
    assert rt.describeStream(path).rejected == 0


def test_the_command_line(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.rowtime")
    done("create", path, "--schema", SCHEMA, "--producer", "Berlin", "--producer", "Oslo ö")
    lines = done("describe", path).splitlines()
    assert lines[3:6] == [
        "clock     held by 'Berlin', 'Oslo ö' (expected, have not opened)",
        f"          rowtime close {path} Berlin: it has left, so its rows count (--complete: it will never send again)",
        f"          rowtime detach {path} Berlin: the stream only stops waiting for it",
    ]
    assert "Berlin    expected, has not opened  none" in "\n".join(lines)
    lost = opened(path, "Berlin", rowsImplyBounds=False, lease=None)
    send(lost, ("10:30", "b"), promise="10:00")
    done("detach", path, "Oslo ö")
    assert "the bound is now 2006-09-11T10:00:00Z" in done("detach", path, "Berlin")
    standing = done("describe", path)
    assert "held by nobody: of the producers of" in standing
    assert f"rowtime close {path} Berlin:" in standing
    assert f"rowtime detach {path} Berlin:" in standing
    assert "the bound is now 2006-09-11T10:30:00Z" in done("close", path, "Berlin")
    done("close", path, "Oslo ö")
    assert f"          rowtime close --complete {path} Berlin: it will never send again" in done("describe", path)
    assert "the bound is now the end of time" in done("close", path, "Berlin", "--complete")
    assert "bound     the end of time: no row follows" in done("describe", path)
    assert "No producer 'nobody'" in refused("close", path, "nobody")
    lost.abandon()


def test_a_complete_file(tmp_path: Path) -> None:
    file = tmp_path / "trades.csv"
    file.write_text("time,net\n2006-09-11T10:00:00Z,a\n2006-09-11T10:30:00Z,b\n")
    path = str(tmp_path / "trades.rowtime")
    send_it = ["send", path, "--csv", file, "--rowtime", "time", "--producer", "net", "--complete"]
    assert "2 row(s) sent by 2 producer(s). Bound: no row follows." in done(*send_it, "--create")
    assert "0 row(s) sent by 2 producer(s); 2 of 2 had been sent before" in done(*send_it)
    file.write_text("time,net\n2006-09-11T11:00:00Z,a\n")
    assert "Producer 'a' of" in refused(*send_it)


def test_an_adapter_that_is_complete_is_not_run_again(path: str) -> None:
    class Archive:
        schema = SCHEMA
        runs = 0

        def run(self, sink: Any) -> None:
            Archive.runs += 1
            sink.sendRow((at("10:00"), "a"))
            sink.close(complete=True)

    for _ in range(2):
        host(Archive, path, producer="archive")
    assert Archive.runs == 1
    assert rt.describeStream(path).bound == rt.RowtimeBound.END


@pytest.mark.parametrize(("name", "told"), [("Berlin", True), ("berln", True), ("Rome", False), ("Berln2", False)])
def test_a_producer_under_a_misspelled_name_is_told(path: str, name: str, told: bool, caplog: Any) -> None:
    rt.createStream(path, SCHEMA, producers=["Berln"])
    for _ in range(2):
        feed(path, name, "10:00")
    assert [f"rowtime close {path} Berln" in record.getMessage() for record in caplog.records] == [True] * told


def test_who_has_never_opened_was_never_seen(path: str) -> None:
    """Also once it was let go; a producer that has attached was seen, also before its first row."""
    rt.createStream(path, SCHEMA, producers=["Oslo", "Berlin"])
    with rt.openSink(path, producer="Bergen"):
        for let_go in (False, True):
            if let_go:
                rt.detachProducer(path, "Oslo")
            info = rt.describeStream(path)
            seen = {producer["name"]: (producer["seen"], producer["sent"]) for producer in described(info)["producers"]}
            assert seen["Oslo"] == seen["Berlin"] == (None, None)
            assert all(time.year >= 2025 for time in seen["Bergen"])
            assert "1969" not in info._repr_html_()


def test_who_joins_a_stream_that_has_a_bound_asks_for_no_summary(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rt.createStream(path, SCHEMA, producers=["Berln"])
    feed(path, "Berln", "10:00")
    with open_store(path) as store:
        monkeypatch.setattr(type(store), "summary", lambda _: pytest.fail("a round trip"))
    feed(path, "Berlin", "10:00")


def test_a_command_that_is_offered_takes_no_name_for_an_option(tmp_path: Path) -> None:
    """Whoever names a producer chooses what the one who is called at night copies into a shell."""
    path = str(tmp_path / "orders.rowtime")
    rt.createStream(path, "rowtime TIMESTAMP NOT NULL", producers=["--help"])
    (command,) = re.findall(r"rowtime (detach .*?) \(", rt.why(path).remedy)
    done = CliRunner().invoke(main, shlex.split(command))
    assert (done.exit_code, rt.describeStream(path).holder) == (0, None), done.output

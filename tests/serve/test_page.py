"""The page in a real browser: who holds the clock, hours that close, names that are only texts, and access for all."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.store import open_store
from spark_rowtime.store.local import exclusive
from tests.diagnosis.test_wait import Query
from tests.serve.conftest import LIMIT_MILLIS, SCHEMA, Server, playwright
from tests.servers import KeptPort

expect = playwright.expect
Serve, Open = Callable[..., Server], Callable[..., Any]
TURNED = "\u202egnorw"
"""A name that is refused, as an earlier version has taken it."""
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "__proto__",
    "constructor",
    TURNED,
    "a" * 300,
    "javascript:alert(3)",
    "{{7*7}} ${7*7}",
]


def at(time: str) -> str:
    return f"2026-01-05T{time}:00Z"


@pytest.fixture
def sinks(orders: str) -> Iterator[dict[str, rt.StreamSink]]:
    """Berlin stands at 09:20, Oslo at 10:40."""
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(rt.openSink(orders, producer=name, onLate="reject"))
            for name in ("Berlin", "Oslo")
        }
        send(opened["Berlin"], "09:20")
        send(opened["Oslo"], "10:40")
        yield opened


def send(sink: rt.StreamSink, time: str) -> None:
    sink.sendRow((at(time), 1))
    sink.flush()


def lane(page: Any, name: str) -> Any:
    """The row of a producer in the table of the lanes."""
    return page.locator(".lanes:not(.chain) tbody tr").filter(has=page.locator("th .producer", has_text=name))


def window(page: Any, name: str) -> Any:
    return page.get_by_role("table", name="Windows of event time").get_by_role("row").filter(has_text=name)


def test_a_silent_producer_is_seen_as_the_holder(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    expect(page.locator(".waits")).to_have_text(f"Waiting for Berlin, at {at('09:20')}.")
    rows = page.locator(".lanes:not(.chain) tbody tr")
    expect(rows.nth(0)).to_contain_text("Berlin")
    expect(rows.nth(0)).to_contain_text("holds the clock")
    expect(lane(page, "Oslo")).not_to_contain_text("holds the clock")
    expect(page.locator(".why .note")).to_contain_text("Berlin")
    expect(page.locator(".why .remedy")).to_contain_text("rowtime detach")
    expect(page.get_by_role("table", name="From the feed that holds")).to_contain_text("Berlin")
    send(sinks["Berlin"], "10:50")
    expect(page.locator(".waits")).to_have_text(f"Waiting for Oslo, at {at('10:40')}.")
    expect(rows.nth(0)).to_contain_text("Oslo")


def test_the_chain_goes_through_the_query_to_the_feed_that_holds_it(
    tmp_path: Path, orders, sinks, serve: Serve, open_page: Open
) -> None:
    hourly = str(tmp_path / "hourly.rowtime")
    rt.createStream(hourly, SCHEMA)
    Query(orders, hourly, "hourly counts").batch()
    page = open_page(serve(hourly, orders).url)  # the chain leads to streams that are served
    chains = page.get_by_role("table", name="From the feed that holds")
    chain = chains.filter(has_text="hourly counts").get_by_role("rowheader")
    expect(chain).to_have_count(4)
    links = (("producer", "Berlin"), ("stream", orders), ("query", "hourly counts"), ("stream", hourly))
    for place, (kind, name) in enumerate(links):
        expect(chain.nth(place)).to_contain_text(kind)
        expect(chain.nth(place)).to_contain_text(name)


def test_an_hour_closes_while_its_bound_is_sent(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    hour = window(page, "2026-01-05 09:00-10:00")
    expect(hour.get_by_role("cell").nth(0)).to_have_text("open")
    expect(hour.get_by_role("cell").nth(1)).to_have_text("Berlin")
    sinks["Berlin"].sendRowtimeBound(at("10:00"))
    expect(hour.get_by_role("cell").nth(0)).to_have_text("✓ complete")
    expect(page.get_by_role("log")).to_contain_text("2026-01-05 09:00-10:00 is complete.")
    expect(window(page, "2026-01-05 10:00-11:00").get_by_role("cell").nth(0)).to_have_text("open")
    expect(page.locator(".facts")).to_contain_text("40 min of event time in the last")


def test_the_end_of_a_stream_is_seen(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    for sink in sinks.values():
        sink.close(complete=True)
    expect(page.locator(".waits")).to_have_text("Complete: no row follows.")
    expect(page.get_by_role("table", name="Windows of event time").get_by_text("open")).to_have_count(0)


def test_hostile_names_stay_texts(tmp_path: Path, serve: Serve, open_page: Open) -> None:
    path = tmp_path / "<b>bold<svg onload=alert(4)>.rowtime"
    rt.createStream(str(path), SCHEMA, producers=[name for name in HOSTILE if name != TURNED])
    with open_store(str(path)) as store:
        store.attach(TURNED, "host", "{}")
    with rt.openSink(str(path), producer=HOSTILE[0], onLate="reject") as sink:
        sink.sendRows([(at("10:00"), 1), (at("09:00"), 2)])
        sink.flush()
        page = open_page(serve(str(path)).url)
        expect(page.locator(".lanes:not(.chain) tbody tr")).to_have_count(len(HOSTILE))
        names = page.locator(".lanes:not(.chain) tbody .producer").all_text_contents()
        assert sorted(names) == sorted(HOSTILE)
        expect(page.get_by_role("heading", level=2)).to_have_text(str(path))
        expect(page.get_by_role("table", name="Newest rejected rows")).to_contain_text(HOSTILE[0])
        assert page.locator("main img, main svg, main script").count() == 0


def test_a_row_at_the_end_of_the_calendar_does_not_make_a_window_for_each_month_until_then(
    tmp_path: Path, serve: Serve, open_page: Open
) -> None:
    path = str(tmp_path / "far.rowtime")
    rt.createStream(path, SCHEMA, maxAhead=None)
    with rt.openSink(path, producer="Berlin") as berlin, rt.openSink(path, producer="Oslo") as oslo:
        send(berlin, "10:00")
        oslo.sendRow(("9999-12-31T23:59:00Z", 1))
        oslo.flush()
        windows = open_page(serve(path).url).get_by_role("table", name="Windows of event time").get_by_role("row")
        expect(windows.nth(10)).to_be_visible()
        assert windows.count() <= 25


def test_a_late_row_is_seen_in_its_lane_and_in_a_table(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    sinks["Oslo"].sendRow((at("10:10"), 2))
    sinks["Oslo"].flush()
    row = page.get_by_role("table", name="Newest rejected rows").get_by_role("row").filter(has_text=at("10:10"))
    expect(row).to_contain_text(f"late, below {at('10:40')}, the promise of producer 'Oslo' itself")
    expect(lane(page, "Oslo").locator(".cross")).to_have_count(1)
    expect(lane(page, "Oslo").locator(".rejected")).to_have_text("1")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (360, 740)], ids=["desk", "phone"])
def test_it_is_accessible_and_fits(orders, sinks, serve: Serve, open_page: Open, scheme: str, size: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    sinks["Oslo"].sendRow((at("10:10"), 2))
    sinks["Oslo"].flush()
    page = open_page(
        serve(orders).url,
        color_scheme=scheme,
        viewport={"width": size[0], "height": size[1]},
        bypass_csp=True,  # axe is put into the page as a script
    )
    expect(page.get_by_role("table", name="Newest rejected rows")).to_contain_text("Oslo")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_why_is_asked_by_keyboard(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    button = page.get_by_role("button", name="Why is 2026-01-05 09:00-10:00 open?")
    expect(button).to_be_visible()
    for _ in range(12):
        page.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(".answer")).to_contain_text(f"Berlin must promise {at('10:00')}")


def test_lanes_are_found_and_ordered(orders, sinks, serve: Serve, open_page: Open) -> None:
    page = open_page(serve(orders).url)
    rows = page.locator(".lanes:not(.chain) tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Find a producer").fill("osl")
    expect(rows).to_have_count(1)
    page.get_by_label("Find a producer").fill("")
    page.get_by_label("Windows of").select_option("1 day")
    expect(window(page, "2026-01-05").get_by_role("cell").nth(0)).to_have_text("open")


def test_it_says_when_the_connection_is_lost_and_goes_on(orders, sinks, serve: Serve, browser) -> None:
    port = KeptPort()
    first = serve(orders, "--port", str(port))
    page = browser.new_page()
    page.set_default_timeout(LIMIT_MILLIS)
    page.goto(first.url)
    expect(lane(page, "Berlin")).to_be_visible()
    assert first.end() == -15  # by SIGTERM
    expect(page.locator("#connection")).to_contain_text("no connection since")
    send(sinks["Berlin"], "09:40")
    serve(orders, "--port", str(port))
    expect(page.locator("#connection")).to_have_text("live")
    expect(lane(page, "Berlin")).to_contain_text(at("09:40"))
    page.close()
    port.close()


def test_a_stream_can_be_deleted_while_it_is_shown(
    orders, sinks, serve: Serve, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(serve(orders).url)
    expect(lane(page, "Berlin")).to_be_visible()
    for sink in sinks.values():
        sink.close()
    monkeypatch.setattr(exclusive, "PATIENCE_SECONDS", 240)  # the server reads the stream now and then
    rt.deleteStream(orders)
    expect(page.get_by_role("alert")).to_contain_text("This stream cannot be read")


@pytest.mark.long
def test_a_thousand_producers_are_drawn_and_updated_at_once(tmp_path: Path, serve: Serve, open_page: Open) -> None:
    path = str(tmp_path / "many.rowtime")
    rt.createStream(path, SCHEMA, producers=[f"producer {n}" for n in range(1000)])
    page = open_page(serve(path).url)
    expect(page.locator(".count")).to_have_text("200 of 1000 producer(s) shown.")
    page.get_by_role("button", name="Show all 1000").click()
    expect(page.locator(".lanes:not(.chain) tbody tr")).to_have_count(1000)
    with rt.openSink(path, producer="producer 999") as sink:
        send(sink, "09:00")
        expect(lane(page, "producer 999")).to_contain_text(at("09:00"))
    expect(page.locator(".lanes:not(.chain) tbody tr.holds")).to_have_count(999)

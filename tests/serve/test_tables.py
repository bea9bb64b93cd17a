"""Tables on the page: their bounds, and the chain through the queries and tables before them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from spark_rowtime.drain.properties import POSITION
from spark_rowtime.drain.tables.table_state import TableState
from spark_rowtime.serve.served import Served
from spark_rowtime.serve.watched_table import WatchedTable
from tests.serve.conftest import Server, playwright
from tests.serve.test_api import get
from tests.streams import at
from tests.tables.test_why import Lake

expect = playwright.expect


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Gold is behind silver, which has all that a drain has brought into bronze."""
    made = Lake(tmp_path)
    made.commit("bronze", "10:30", **{POSITION: "7"})
    made.query("silver", "10:30", made.read("bronze", 0, "10:30"))
    made.query("gold", "10:00", made.read("silver", 0, "10:00"))
    return made


def targets(lake: Lake, *names: str) -> list[str]:
    return [f"delta:{lake.path(name)}" for name in names]


def test_a_table_shows_what_holds_it_and_its_windows_close(
    lake: Lake, serve: Callable[..., Server], open_page: Callable[..., Any]
) -> None:
    gold, *others = targets(lake, "gold", "silver", "bronze")
    page = open_page(serve(gold, *others).url)
    shown = page.get_by_role("region", name=gold)
    expect(shown.locator(".waits")).to_have_text(f"Waiting for gold-query, at {at('10:00')}.")
    expect(shown.locator(".why .note")).to_contain_text("which now has the bound 2006-09-11T10:30:00Z")
    links = shown.locator(".chain").get_by_role("rowheader")
    expect(links).to_contain_text(["silver", "gold-query", "gold"])
    expect(shown.get_by_label("Find a producer")).to_be_hidden()
    hour = shown.locator(".windows tr").filter(has_text="2006-09-11 10:00-11:00")
    expect(hour).to_contain_text("open")
    hour.get_by_role("button").click()
    expect(hour.get_by_role("status")).to_contain_text("A drain writes")
    lake.query("gold", "11:00", lake.read("silver", 0, "11:00"))
    expect(hour).to_contain_text("✓ complete")
    expect(links).to_contain_text(["a drain", "bronze", "silver-query", "silver", "gold-query", "gold"])


def test_the_answer_leads_only_to_what_is_served(lake: Lake, serve: Callable[..., Server]) -> None:
    """And tells no path of what is not."""
    [gold] = targets(lake, "gold")
    server = serve(gold)
    assert json.loads(get(server, "api/streams")) == {"streams": [], "tables": [gold]}
    found = json.loads(get(server, f"api/why?{urlencode({'stream': gold, 'at': at('11:00')})}"))
    assert (found["cause"], found["bound"]["time"]) == ("notFollowed", at("10:00"))
    assert lake.path("silver") not in json.dumps(found)


def test_a_table_is_read_when_it_is_time_to_and_told_when_it_has_changed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    [bronze] = targets(lake, "bronze")
    watched = WatchedTable(bronze, Served([bronze]))
    monkeypatch.setattr("spark_rowtime.serve.watched_table.TABLE_SECONDS", 3600)
    assert (watched.look() or {})["facts"]["bound"]["text"] == at("10:30")
    lake.commit("bronze", "11:00", **{POSITION: "8"})
    assert watched.look() is None, "it was read a moment ago"
    monkeypatch.setattr("spark_rowtime.serve.watched_table.TABLE_SECONDS", 0)
    watched._due = 0
    assert (watched.look() or {})["facts"]["bound"]["text"] == at("11:00")
    assert watched.look() is None, "nothing has changed"


def test_a_table_that_cannot_be_read_says_so_and_hides_no_other(tmp_path: Path, lake: Lake) -> None:
    missing, bronze = f"delta:{tmp_path}/none", f"delta:{lake.path('bronze')}"
    served = Served([missing, bronze])
    found = {target: WatchedTable(target, served).look() or {} for target in served.tables}
    assert "none" in found[missing]["error"]
    assert (found[bronze]["error"], found[bronze]["why"]["cause"]) == (None, "drain")


def test_each_table_is_read_once_for_an_answer(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the walk to gold, which is behind, begins again at what silver has."""
    read: list[str] = []
    of = TableState.of
    monkeypatch.setattr(TableState, "of", lambda target: read.append(target) or of(target))
    gold, silver, bronze = targets(lake, "gold", "silver", "bronze")
    assert Served([gold, silver, bronze]).why(gold).holder == "gold-query"
    assert read == [gold, silver, bronze]

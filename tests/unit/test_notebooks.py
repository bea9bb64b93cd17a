"""How streams, bounds and trains show themselves in a notebook."""

from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

import spark_rowtime as rt

SCHEMA = "rowtime TIMESTAMP NOT NULL, name STRING"
HOSTILE = ["<img src=x onerror=alert(1)>", "</td></table><script>alert(2)</script>", "&lt;b&gt;", "'\" onmouseover=x"]


class _Page(HTMLParser):
    """The tags with their attributes, and the texts of the cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.cells += [""] if tag in ("td", "th", "caption") else []

    def handle_data(self, data: str) -> None:
        self.cells[-1] += data


def shown(value: Any) -> list[str]:
    page = _Page(value._repr_html_())
    assert page.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert page.attributes <= {"scope"}
    return page.cells


def test_a_stream_shows_who_holds_it_first_and_names_as_texts() -> None:
    path = "memory://<b>notebook"
    rt.createStream(path, SCHEMA, producers=["zoe"])
    for name in HOSTILE:
        with rt.openSink(path, producer=name) as sink:
            sink.sendRow(("2026-01-05T10:00:00Z", name))
    cells = shown(rt.describeStream(path))
    assert cells[0] == path
    assert {*HOSTILE} <= {*cells}
    assert cells[cells.index("last sent") + 1 :][:3] == ["zoe", "holds the bound", "expected"]


def test_many_producers_are_cut() -> None:
    rt.createStream("memory://notebook-many", SCHEMA, producers=[f"p{n}" for n in range(1000)])
    cells = shown(rt.describeStream("memory://notebook-many"))
    assert "producers, 50 of 1000" in cells
    assert len(cells) < 500


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (rt.RowtimeBound("2026-01-05T10:00:00Z", strict=True), "every later row is after 2026-01-05T10:00:00Z"),
        (rt.RowtimeBound.END, "no row follows"),
    ],
)
def test_a_bound(bound: rt.RowtimeBound, text: str) -> None:
    assert shown(bound) == ["RowtimeBound", "bound", text]


def test_a_train_shows_its_first_rows_and_its_bound() -> None:
    times = pa.array(range(30), pa.timestamp("us", "UTC"))
    values = pa.array([*HOSTILE, None, "x" * 10_000, *[""] * 24])
    rows = pa.record_batch({"rowtime": times, "<i>name": values, "raw": pa.array([b"ab"] * 30)})
    cells = shown(rt.Train(rows, None))
    assert cells[:4] == ["30 row(s), the first 20", "rowtime", "<i>name", "raw"]
    assert cells[4:7] == ["1970-01-01T00:00:00Z", HOSTILE[0], "6162"]
    assert "null" in cells
    assert max(map(len, cells)) < 300
    assert cells[-2:] == ["bound", "none"]

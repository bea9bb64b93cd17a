"""Plots of what ``run_all.py`` measured last, as SVG: docs/latency.svg and docs/throughput.svg. Needs matplotlib."""

import statistics
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from run_all import LAST
from tables import AT_REST, BOTH, HEARTBEAT, IPC, PARQUET, PYTHON, READING, SAME, SENDS, kept

DOCS = Path(__file__).parent.parent / "docs"
OURS, THEIRS, OTHERS = "#1b6ca8", "#c05a1c", "#9a8478"
mpl.rcParams.update(
    {"svg.hashsalt": "rowtime", "svg.fonttype": "none", "font.size": 9, "figure.constrained_layout.use": True}
)


def latency(results: Any) -> plt.Figure:
    """The share of rounds in which a result was there after so long."""
    figure, panes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    for pane, what in zip(panes, (SAME, BOTH), strict=True):
        result = results[what, HEARTBEAT]
        for values, label, colour in ((result["ours"], "bound", OURS), (result["baseline"], HEARTBEAT, THEIRS)):
            ordered = sorted(values)
            pane.step(
                ordered, [(n + 1) / len(ordered) for n in range(len(ordered))], where="post", color=colour, label=label
            )
        pane.set_title(what, fontsize=9)
        pane.set_xlim(left=0)
        pane.set_xlabel("ms from sending to the window's row in the sink")
        pane.grid(alpha=0.3)
    panes[0].set_ylabel("share of rounds")
    panes[0].legend(loc="lower right", frameon=False)
    return figure


def throughput(results: Any) -> plt.Figure:
    """CPU seconds of rows at rest; rows a second of sending."""
    figure, (reading, sending) = plt.subplots(1, 2, figsize=(9, 3.2))
    for place, what in enumerate((AT_REST, READING)):
        bars = [
            ("rowtime", results[what, PARQUET]["ours"], OURS),
            (PARQUET, results[what, PARQUET]["baseline"], THEIRS),
            (PYTHON, results[what, PYTHON]["baseline"], OTHERS),
        ]
        for n, (label, values, colour) in enumerate(bars):
            reading.bar(
                place + 0.27 * (n - 1), statistics.median(values), 0.25, color=colour, label=None if place else label
            )
    reading.set_xticks([0, 1], ["minute count and sum", "reading only"])
    reading.margins(y=0.35)
    reading.set_ylabel("CPU s for 10M rows")
    sizes = [what.split()[1] for what in SENDS]
    for key, label, colour in (("ours", "sendRows and flush", OURS), ("baseline", IPC, THEIRS)):
        rates = [statistics.median(results[what, IPC][key]) for what in SENDS]
        sending.plot(sizes, rates, marker="o", color=colour, label=label)
    sending.set_yscale("log")
    sending.set_xlabel("rows a train")
    sending.set_ylabel("rows/s")
    for pane in (reading, sending):
        pane.legend(frameon=False)
        pane.grid(alpha=0.3, axis="y")
    return figure


def main() -> None:
    results = kept(LAST)
    for name, draw in (("latency", latency), ("throughput", throughput)):
        draw(results).savefig(DOCS / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()

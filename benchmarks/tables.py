"""What ``run_all.py`` has kept, as the tables of benchmarks/README.md and docs/performance.md, in Markdown."""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import shown


@dataclass(frozen=True)
class Line:
    """A line of the table: what was measured, against which baseline, and what is wanted of their ratio."""

    what: str
    base: str | None
    least: str
    aim: str


PHASES = "a batch with a bound and no rows"
HEARTBEAT = "plain Spark, heartbeat row"
PYTHON, PARQUET, IPC = "bare Python Arrow source", "parquet file stream", "Arrow IPC file writer"
BLOB, TWICE = "SQLite blob, one sync", "file and SQLite row, two syncs"
SAME, BOTH = "bound to result, both as Spark comes", "bound to result, both as rt.configure sets up"
AT_REST, READING = "rows at rest, minute count and sum", "rows at rest, reading only"
SENDS = [f"sendRows, {rows} rows a train" for rows in ("1", "100", "10,000", "100,000")]
DRAINS = {f"drain into {kind}": f"{kind}'s library alone" for kind in ("delta", "iceberg", "parquet")}
CPU = ", by CPU time"
TOPIC, TOPIC_ALONE = "drain into a topic of Kafka", "transactional producer alone"
KAFKA_IN = ("a topic into a stream, one process", "a topic into a stream, two processes")
BARE_CONSUMER = "bare Kafka consumer that decodes the same"
KAFKA_WATCH, READING_CONSUMER = "a topic watched", "bare Kafka consumer that reads the same times"
WATCH_CORE = "core of a watch by append-time, 10,000 messages a second"
WATCHED_BROKER, UNWATCHED_BROKER = "broker beside a watch by append-time, 10,000 messages a second", "broker alone"
RECORD = "withWatermark, heartbeat record"
FLEETS, GROWS = ("1,000", "100,000"), (("commit", "1.3"), ("poll", "2"), ("plan", "2"))
VALID, AS_OF = "Spark's join by the times of validity", ("1,000", "100,000")
AS_OF_GROWTH = ("state", "memory of all processes", "batch")
PAGE = (
    ("first lanes drawn", "500 ms"),
    ("commit to seen, 200 lanes", "500 ms"),
    ("commit to seen, all lanes", "500 ms"),
    ("core of the server, nothing sent", "5 %"),
    ("core of the server, all send each second", "5 %"),
    ("core of the server, nobody looks", "5 %"),
)
NEXMARK = ("q0", "q1", "q2", "q5", "q7", "q8", "q11")
PARQUET_WATERMARK = "Parquet files, withWatermark"
COMMITTED = "bound to a committed result, as rt.configure sets up"
FLINK = {every: f"Flink 2.3, checkpoints each {every}" for every in ("100 ms", "1 s")}
BARE, WHO = "bare transaction", ("1 producer", "8 producers")
LINES = (
    Line(SAME, HEARTBEAT, "0.5", "0.35"),
    Line(BOTH, HEARTBEAT, "0.5", "0.35"),
    Line("bound to result, rt.configure against Spark as it comes", HEARTBEAT, "0.25", "0.15"),
    *(Line(COMMITTED, base, "", "") for base in FLINK.values()),
    Line(AT_REST, PYTHON, "1.05", ""),
    Line(AT_REST, PARQUET, "", "1.0"),
    Line(READING, PYTHON, "1.05", ""),
    Line(READING, PARQUET, "", "1.0"),
    *(Line(f"Nexmark {query}", PARQUET_WATERMARK, "1.1", "0.9") for query in NEXMARK),
    *(Line(what, IPC, least, "0.9") for what, least in zip(SENDS, ("0.5", "0.9", "0.4", "1.0"), strict=True)),
    *(Line(f"{what}{CPU}", IPC, least, "") for what, least in zip(SENDS, ("", "0.7", "0.7", "0.7"), strict=True)),
    *(Line(f"{what}, each committed", IPC, "", "") for what in SENDS),
    Line("sendRow, one at a time", None, "1.2M rows/s", "2M rows/s"),
    Line("durability=power, small trains", BLOB, "2,500 commits/s", "5,000 commits/s"),
    Line("durability=power, small trains", TWICE, "", ""),
    Line("durability=power, small trains, 8 threads", BLOB, "2,500 commits/s", "5,000 commits/s"),
    Line("commit to seen by a reader", None, "1 ms", ""),
    Line("core of an idle reader", None, "2 %", ""),
    Line("poll, 10^6 trains against 10^3", "10^3 trains", "flat", ""),
    Line("plan, 10^6 trains against 10^3", "10^3 trains", "flat", ""),
    Line("plan, 256 producers against 1", "1 producer", "2", ""),
    *(Line(f"{what}, beside {size} producers", "beside 10", most, "") for size in FLEETS for what, most in GROWS),
    Line("1,000 sinks in a process, open", None, "1 s", ""),
    Line("1,000 sinks in a process, descriptors", None, "100", ""),
    Line("1,000 sinks in a process, memory", None, "120 MB", ""),
    Line("sendRows, 100,000 devices in a sink", "rowsImplyBounds=False", "0.25", ""),
    Line("sendRows, 100,000 skewed devices", "rowsImplyBounds=False", "", ""),
    Line("sendRow, 100,000 devices in a sink", "rows in order", "0.5", ""),
    Line("sendRow, 100,000 skewed devices", "rows in order", "", ""),
    Line("sendRow, 100 devices in a sink", "rows in order", "0.5", ""),
    Line("bytes of a commit of ten devices, of 100,000", "of 100", "1", ""),
    Line("memory of a device, of 100,000", None, "300 bytes", ""),
    *(Line(f"{what}{by}", base, "0.8", "") for by in ("", CPU) for what, base in DRAINS.items()),
    Line(TOPIC, TOPIC_ALONE, "0.7", ""),
    *(Line(what, BARE_CONSUMER, "0.5", "") for what in KAFKA_IN),
    Line(KAFKA_WATCH, READING_CONSUMER, "1.2", ""),
    Line(WATCH_CORE, None, "1 %", ""),
    Line(WATCHED_BROKER, UNWATCHED_BROKER, "1.1", ""),
    Line("bound to result over Kafka", RECORD, "0.5", ""),
    Line("rows per second over Kafka", RECORD, "0.95", ""),
    *(Line(f"page of 1,000 producers, {what}", None, most, "") for what, most in PAGE),
    Line("sliding hour, 100 keys", "SQL window function in batch", "", ""),
    Line("sliding hour, 10,000 keys", "SQL window function in batch", "0.5", ""),
    *(Line(f"as of, {keys} keys", VALID, "1", "") for keys in AS_OF),
    *(Line(f"as of, {keys} keys, DuckDB in memory", None, "", "") for keys in AS_OF),
    Line("as of, 1,000,000 keys, state of a key", None, "", ""),
    *(Line(f"as of, 1,000,000 keys, {what}", "in earlier batches", "flat", "") for what in AS_OF_GROWTH),
    *(Line(f"PostgreSQL, {who}{how}", BARE, "0.5", "") for how in ("", ", not synced") for who in WHO),
    Line("PostgreSQL, commit to seen by a reader", None, "10 ms", ""),
    Line("PostgreSQL, core of an idle reader", None, "3 %", ""),
    Line("PostgreSQL, poll, 1,000,000 trains", "10,000 trains", "flat", ""),
    Line("PostgreSQL, plan, 1,000,000 trains", "10,000 trains", "flat", ""),
    Line("rows of a location, minute count and sum", "local stream", "1.1", ""),
    Line("PostgreSQL, bound to result", "streams in folders", "1.3", ""),
)
Results = dict[tuple[str, str | None], dict[str, Any]]


def kept(file: Path) -> Results:
    """By what and baseline."""
    if not file.exists():
        return {}
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {(result["what"], result.get("base")): result for result in found}


def table(results: Results) -> str:
    """The table, in Markdown."""
    head = "| work | measured | baseline, same run | ratio | at least | aim |\n|---|---|---|---|---|---|\n"
    return head + "".join(row(line, found(line, results)) for line in LINES)


def found(line: Line, results: Results) -> dict[str, Any] | None:
    """What was measured for a line; without a baseline of its own, beside whichever there is."""
    same = (result for (what, base), result in results.items() if what == line.what and line.base in (None, base))
    return next(same, None)


def row(line: Line, result: dict[str, Any] | None) -> str:
    """One line; without a figure where the program was not run."""
    cells = [line.what, "not measured", "", "", line.least, line.aim]
    if result is not None:
        unit, mine = result["unit"], result["ours"]
        cells[1] = shown(mine, unit)
        if "baseline" in result:
            theirs = result["baseline"]
            ratio = statistics.median(mine) / statistics.median(theirs)
            cells[2:4] = [f"{result['base']}: {shown(theirs, unit)}", f"{ratio:.2f}"]
    return f"| {' | '.join(cells)} |\n"


def settings(results: Results) -> str:
    """What each setting gains, and what an idle query costs."""
    text = "| | a bound to its result | as rt.configure sets up, same run |\n|---|---|---|\n"
    for (what, base), result in results.items():
        if what == "settings of rt.configure":
            theirs, mine = statistics.median(result["baseline"]), statistics.median(result["ours"])
            text += f"| {base} | {theirs:,.0f} ms | {mine:,.0f} ms |\n"
    idle = [(what, result) for (what, _), result in results.items() if what.startswith("core of an idle query")]
    return text + "".join(f"\n{what}: {100 * statistics.median(result['ours']):.1f} %.\n" for what, result in idle)


def phases(results: Results) -> str:
    """Where Spark says that a batch's time goes."""
    found = {base: result["medians"] for (what, base), result in results.items() if what == PHASES}
    names = list(next(iter(found.values()), {}))
    text = f"| ms | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n"
    return text + "".join(f"| {base} | {' | '.join(f'{m[n]:.0f}' for n in names)} |\n" for base, m in found.items())


def growth(results: Results) -> str:
    """A poll without news / one with a batch to plan."""
    cases = [f"{state}, {order}" for state in ("unreleased", "released") for order in ("arrival", "rowtime")]
    text = f"| CPU ms | {' | '.join(cases)} |\n|---|---|---|---|---|\n"
    for (what, base), result in results.items():
        if what == "growth":
            pairs = zip(result["medians"][::2], result["medians"][1::2], strict=True)
            text += f"| {base} | {' | '.join(f'{poll:.2f} / {plan:.2f}' for poll, plan in pairs)} |\n"
    return text

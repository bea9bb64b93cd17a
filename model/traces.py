"""Whether the model of commits admits what a real stream went through: traces, as Alloy reads them.

A trace becomes a command of Alloy that asks for a life of ``protocol/commits.als`` with just these steps, by the
model's own predicates, and with the bounds, rows and answers that were seen. So no rule is written a second time here.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from model.check import FOLDER, results

JOINED, DIED, EXPIRED = "joined", "died", "expired"
LANDED, REPEATED, AGAIN, FENCED = "landed", "repeated", "again", "fenced"
"""What became of a commit: it landed; it was sent again, and changed nothing, or something; it was refused."""


class Step(NamedTuple):
    """What was seen of a stream: a process took its producer, committed, was refused, died; or a lease ended.

    ``bound``: the stream's, behind it; ``rows``: the rowtimes of a commit, of which ``late`` were rejected; ``floor``:
    the producer's bound that the commit carried. Times are whole numbers; 0: there is no bound.
    """

    what: str
    process: str
    producer: str
    bound: int = 0
    rows: tuple[int, ...] = ()
    floor: int = 0
    late: tuple[int, ...] = ()


class Seen(NamedTuple):
    """What was seen of a stream before a trace: its bound, whom it waits for, and what they had promised."""

    bound: int
    counted: frozenset[str]
    promised: dict[str, int]


class Trace(NamedTuple):
    """Steps; ``before`` is None where they begin with the stream."""

    steps: tuple[Step, ...]
    before: Seen | None = None


def admitted(traces: Sequence[Trace]) -> list[bool]:
    """Returns of each trace whether the model has such a life."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(FOLDER / "protocol", Path(folder) / "protocol")
        found = []
        for number, trace in enumerate(traces):
            file = Path(folder) / f"trace{number}.als"
            file.write_text(_Module(trace).text())
            found += [result.found for result in results(file)]
        return found


class _Module:
    """A trace as a module of Alloy. Everything in it is an atom: processes, producers, times and rows."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._processes = {s.process: s.producer for s in trace.steps if s.process}
        before = trace.before or Seen(0, frozenset(), {})
        self._producers = sorted({*self._processes.values(), *(s.producer for s in trace.steps), *before.counted})
        sent = chain.from_iterable((s.bound, s.floor, *s.rows) for s in trace.steps)
        self._times = {t: f"T{n}" for n, t in enumerate(sorted({0, before.bound, *before.promised.values(), *sent}))}
        self._rows = [(number, time) for number, s in enumerate(trace.steps) for time in s.rows]

    def text(self) -> str:
        """The module, with its one command."""
        steps = [part for number, step in enumerate(self._trace.steps) for part in self._parts(number, step)]
        commits = 1 + sum(step.what in (LANDED, REPEATED, AGAIN) for step in self._trace.steps)
        epochs = 2 + sum(step.what == JOINED for step in self._trace.steps)
        states = len(steps) + 1
        sizes = {"Producer": self._producers, "Process": self._processes, "Time": self._times, "Row": self._rows}
        names = [f"{len(atoms)} {name}" for name, atoms in sizes.items()]
        numbers = f"exactly {commits + 1} Number, exactly {epochs} Epoch"
        scope = ", ".join([numbers, "1 Reader", f"{states}..{states} steps", *names])
        of = (f"{_process(p)}.of = {_producer(of)}" for p, of in self._processes.items())
        order = (f"{name}.(times/next) = {after}" for name, after in zip(*self._ordered(), strict=False))
        return "\n".join(
            [
                "open protocol/commits\nopen util/ordering[Time] as times",
                *(f"one sig {_producer(name)} extends Producer {{}}" for name in self._producers),
                *(f"one sig {_process(name)} extends Process {{}}" for name in self._processes),
                *(f"one sig {name} extends Time {{}}" for name in self._times.values()),
                *(f"one sig {_row(*row)} extends Row {{}}" for row in self._rows),
                "fact { no Mutant.rule and no Known and " + " and ".join([*of, *order, *self._row_times()]) + " }",
                f"run admitted {{ {self._start()} and (\n  " + " ;\n  ".join(steps) + f") }} for 0 but {scope}",
            ]
        )

    def _ordered(self) -> tuple[list[str], list[str]]:
        names = list(self._times.values())
        return names, names[1:]

    def _row_times(self) -> Iterator[str]:
        return (f"{_row(number, time)}.time = {self._times[time]}" for number, time in self._rows)

    def _start(self) -> str:
        before = self._trace.before
        if before is None:
            return "start"
        holding: dict[str, str] = {}
        for process, of in self._processes.items():
            holding.setdefault(of, process)
        joining = {s.process for s in self._trace.steps if s.what == JOINED}
        held = [f"{_process(p)}.held = {_producer(of)}.epoch and {_process(p)}.done = {_producer(of)}.number"
                for of, p in holding.items() if p not in joining]  # fmt: skip
        return " and ".join(
            [
                "no Logged + Rejected + Removed + Twice and some Up and no Silent and Process.upTo = times/first",
                "no Stopped + Dead + Failed + Locker + Sending + Asked + Answered and no Acknowledged and no batch",
                *(f"no {_process(p)}.held" for p in self._processes if p in joining),
                *held,
                f"Store.bound = {self._times[before.bound]}",
                "Counted = " + (" + ".join(map(_producer, sorted(before.counted))) or "none"),
                *(f"{_producer(name)}.promised = {self._times[floor]}" for name, floor in before.promised.items()),
            ]
        )

    def _parts(self, number: int, step: Step) -> list[str]:
        process, bound = _process(step.process), f"Store.bound' = {self._times[step.bound]}"
        if step.what == JOINED:
            return [f"attach[{process}] and {bound}"]
        if step.what == DIED:
            return [f"die[{process}]"]
        if step.what == EXPIRED:
            return ["pass", f"expire[{_producer(step.producer)}] and {bound}"]
        if step.what in (REPEATED, AGAIN):
            seen = "sameLog and sameProducers" if step.what == REPEATED else "number' != number"
            return [f"again[{process}]", f"land[{process}] and {seen} and {bound}", f"acknowledge[{process}]"]
        rows = " + ".join(_row(number, time) for time in step.rows) or "none"
        kept = " + ".join(_row(number, time) for time in step.rows if time not in step.late) or "none"
        upto = f"{process}.upTo' = {self._times[step.floor] if step.floor else f'{process}.upTo'}"
        sent = f"send[{process}] and {process}.batch' = {rows} and {upto}"
        if step.what == FENCED:
            return [sent, f"land[{process}] and {process} in Failed' and sameLog and {bound}"]
        landed = f"land[{process}] and {bound} and Logged' = Logged + ({kept}) and number' != number"
        return [sent, landed, f"{'lose' if self._answer_is_lost(number) else 'acknowledge'}[{process}]"]

    def _answer_is_lost(self, number: int) -> bool:
        later = (step for step in self._trace.steps[number + 1 :] if step.process == self._trace.steps[number].process)
        return next((step.what for step in later), None) in (REPEATED, AGAIN)


def _process(name: str) -> str:
    return f"Process_{name}"


def _producer(name: str) -> str:
    return f"Producer_{name}"


def _row(number: int, time: int) -> str:
    return f"Row_{number}_{time}"


class Event(NamedTuple):
    """An event of a stream's log: ``least``: the least rowtime of its train; 0: it has none."""

    what: str
    producer: str
    floor: int
    bound: int
    least: int


def excerpts(log: Iterable[Event], size: int) -> Iterator[Trace]:
    """Cuts a log into traces of at most ``size`` events, as far as the model knows them: joined, sent, detached.

    Each process of a producer that another takes over is dead by then: so it is where processes are killed.
    """
    events = list(log)
    for first in range(0, len(events), size):
        steps = tuple(_steps(events[:first], events[first : first + size]))
        if steps:
            yield Trace(steps, _seen(events[:first]))


def _seen(events: Sequence[Event]) -> Seen | None:
    if not events:
        return None
    last = {event.producer: event for event in events}
    counted = frozenset(name for name, event in last.items() if event.what in ("joined", "sent"))
    return Seen(events[-1].bound, counted, {n: e.floor for n, e in last.items() if e.what == "sent" and e.floor})


def _steps(before: Sequence[Event], events: Sequence[Event]) -> Iterator[Step]:
    alive = {event.producer: 0 for event in before if event.what in ("joined", "sent")}
    count = dict.fromkeys(alive, 0)
    for event in events:
        name = event.producer
        if event.what not in ("joined", "sent", "detached"):
            return
        if name in alive and event.what in ("joined", "detached"):
            yield Step(DIED, f"{name}_{alive.pop(name)}", name)
        if event.what == "joined":
            count[name] = alive[name] = count.get(name, -1) + 1
            yield Step(JOINED, f"{name}_{alive[name]}", name, event.bound)
        elif event.what == "detached":
            yield Step(EXPIRED, "", name, event.bound)
        else:
            rows = (event.least,) if event.least else ()
            yield Step(LANDED, f"{name}_{alive[name]}", name, event.bound, rows, event.floor)

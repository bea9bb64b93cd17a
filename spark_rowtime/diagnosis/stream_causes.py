"""The causes that lie in one stream and its producers."""

from typing import NamedTuple

from spark_rowtime.bounds.clock import Status
from spark_rowtime.bounds.key_order import declares_keys
from spark_rowtime.diagnosis.causes import Cause, Finding
from spark_rowtime.diagnosis.stream_state import StreamState
from spark_rowtime.store.record import ProducerInfo
from spark_rowtime.store.snapshot import HOST, ReportedStatus
from spark_rowtime.types.short_repr import shell_arguments, short_repr
from spark_rowtime.types.stranger import Stranger
from spark_rowtime.types.timestamps import END, SECOND_MICROS, show_micros

UNANSWERED_SHARE = 2
"""A process is taken not to answer after one half of its producer's lease, which it renews after one third."""


def finding_of(stream: StreamState, needs: int, silent_after: int) -> Finding | None:
    """Why the stream stands below ``needs``, a time in microseconds; None if it does not.

    ``silent_after``: a producer that has sent nothing for so many microseconds is silent.
    """
    if stream.floor is not None and stream.floor >= needs:
        return None
    if not stream.producers:
        return _no_producers(stream)
    if stream.holder is None:
        return _nobody(stream)
    failing = _adapter(stream, stream.holder.name)
    return failing or _of_settings(stream, needs) or _of_holder(stream, stream.holder, needs, silent_after)


def _no_producers(stream: StreamState) -> Finding:
    return Finding(
        Cause.NO_PRODUCERS,
        None,
        "No producer has been attached to the stream yet.",
        f"Start the feed, or the query that writes to {stream.path}; or check whether it writes to another path.",
    )


def _nobody(stream: StreamState) -> Finding:
    """The stream waits for nobody, so its bound stays as it is until somebody sends."""
    for cause, status in _BY_NEED:
        names = [p.name for p in stream.producers.values() if p.status is status and _cause(stream, p) is cause]
        if names:
            name = max(names, key=lambda each: stream.producers[each].floor or 0)
            text, remedy = _NOBODY[cause]
            command = {"name": name, "end": shell_arguments(stream.path, name)}
            failing = _adapter(stream, name)
            return failing or Finding(cause, None, text.format(**command), remedy.format(**command), name)
    return Finding(Cause.LEFT, None, "All producers are complete.", "")


def _adapter(stream: StreamState, producer: str) -> Finding | None:
    """The adapter that sends as ``producer`` has failed since the producer last sent."""
    for (role, name), status in stream.statuses.items():
        report = _report_of(status) if role == HOST else None
        if report is not None and producer in report.producers and status.unseen < stream.seen[producer].silent:
            again = "is restarted again and again" if report.restarts else "was given up"
            return Finding(
                Cause.ADAPTER_FAILING,
                producer,
                f"The adapter {name!r}, which sends as producer {producer!r}, fails and {again}: {report.error}",
                f"Correct what the adapter failed with; it continues from its checkpoint. "
                f"{_letting_go(stream.path, producer)}",
                producer,
            )
    return None


class _HostReport(NamedTuple):
    """What the host of an adapter has reported."""

    producers: list[str]
    restarts: bool
    error: str


def _report_of(status: ReportedStatus) -> _HostReport | None:
    """What the status of a host says; None if it is of another version."""
    try:
        given = Stranger.of_text(status.content)
        error = given.text("error")
        return None if error is None else _HostReport(given.texts("producers"), given.flag("restarts"), error)
    except ValueError:
        return None


def _cause(stream: StreamState, producer: ProducerInfo) -> Cause:
    if producer.status is not Status.DETACHED:
        return Cause.IDLE if producer.status is Status.IDLE else Cause.LEFT
    last = stream.seen.get(producer.name)
    ended = last is not None and last.lease is not None and last.unseen > last.lease
    return Cause.PROCESS_GONE if ended else Cause.DETACHED


_BY_NEED = [
    (Cause.PROCESS_GONE, Status.DETACHED),
    (Cause.DETACHED, Status.DETACHED),
    (Cause.IDLE, Status.IDLE),
    (Cause.LEFT, Status.LEFT),
]
"""If the stream waits for nobody: the status of the producer that is named, the first that there is."""
_START_AGAIN = (
    "Start the feed again. If it has ended for good: rowtime close {end} (its rows count), or "
    "rowtime close --complete {end} (it will never send again)."
)
_LOOK_AT_FEED = (
    "Look at the feed of {name!r}; the bound moves with its next row or bound. If it has ended for good: "
    "rowtime close {end} (its rows count), or rowtime close --complete {end} (it will never send again)."
)
_IDLE = (
    "The stream waits for nobody: producer {name!r} is silent for longer than idleTimeout, or than its feed's idle, "
    "and no other one sends."
)
_NOBODY = {
    Cause.PROCESS_GONE: (
        "The stream waits for nobody: the process of producer {name!r} is gone, and its lease has ended.",
        _START_AGAIN,
    ),
    Cause.DETACHED: ("The stream waits for nobody: producer {name!r} was detached.", _START_AGAIN),
    Cause.IDLE: (_IDLE, _LOOK_AT_FEED),
    Cause.LEFT: (
        "The stream waits for nobody: producer {name!r} has left.",
        "Start a feed that sends. If no row follows: rowtime close --complete {end}.",
    ),
}


def _of_settings(stream: StreamState, needs: int) -> Finding | None:
    """The causes that lie in the settings of the stream."""
    settings, strongest, holder = stream.settings, stream.strongest, stream.holder
    assert holder is not None
    if not settings.boundsBeforeRows and stream.largest is None:
        return Finding(
            Cause.NO_ROWS,
            holder.name,
            "The stream has boundsBeforeRows=False and no row yet, so no bound counts.",
            "Send a row. To let bounds count before the first row, create the stream without boundsBeforeRows=False.",
        )
    if settings.maxLag is None or strongest is None or stream.floor != strongest - settings.maxLag:
        return None
    return Finding(
        Cause.MAX_LAG,
        holder.name,
        f"The stream follows its strongest producer, which is at {show_micros(strongest)}, at the distance maxLag; "
        f"producer {holder.name!r} is still further behind, at {show_micros(holder.floor)}.",
        f"{holder.name} must promise {show_micros(needs)}, or the strongest producer "
        f"{show_micros(min(needs + settings.maxLag, END))}. {_letting_go(stream.path, holder.name)}",
    )


def _of_holder(stream: StreamState, holder: ProducerInfo, needs: int, silent_after: int) -> Finding:
    cause, note = _why_held(stream, holder, silent_after)
    more = [name for name in stream.holders[1:] if (stream.producers[name].floor or 0) < needs]
    others = f" {len(more)} more producer(s) stand as low: {', '.join(map(repr, more[:3]))}." if more else ""
    return Finding(cause, holder.name, note + others, _remedy(stream, cause, holder, needs), holder.name)


def _why_held(stream: StreamState, holder: ProducerInfo, silent_after: int) -> tuple[Cause, str]:
    name, last = holder.name, stream.seen[holder.name]
    if holder.status is Status.EXPECTED:
        return Cause.EXPECTED, f"Producer {name!r} is expected, and has not opened a sink."
    if last.lease is not None and last.unseen > last.lease // UNANSWERED_SHARE:
        left = max(last.lease - last.unseen, 0)
        return Cause.LEASE, (
            f"The process of producer {name!r} has not answered for {_seconds(last.unseen)}. The stream waits for it "
            f"until its lease ends, in {_seconds(left)}."
        )
    if holder.floor is None or holder.number == 0:
        return Cause.NOTHING_PROMISED, f"Producer {name!r} is attached, but has promised nothing{_rows(holder)}."
    keys = stream.weakest_keys.get(name, [])
    if declares_keys(holder.declaration) and keys and keys[0][1] < max(floor for _, floor in keys):
        return Cause.KEY, (
            f"Producer {name!r} stands at {show_micros(holder.floor)} because of the value {short_repr(keys[0][0])} "
            f"of its column inOrderPer; the next value is at {show_micros(keys[1][1])}."
        )
    at = f"stands at {show_micros(holder.floor)}"
    if last.silent >= silent_after:
        return Cause.SILENT, f"Producer {name!r} {at}. It lives, but has sent nothing for {_seconds(last.silent)}."
    return Cause.PRODUCER_BEHIND, f"Producer {name!r} {at}. It sends, and has not come further."


def _rows(holder: ProducerInfo) -> str:
    return f", although it has sent {holder.accepted} row(s): its rows imply no bound" if holder.accepted else " yet"


def _remedy(stream: StreamState, cause: Cause, holder: ProducerInfo, needs: int) -> str:
    name, time, path = holder.name, _wanted(needs), stream.path
    if cause is Cause.EXPECTED:
        return f"Start {name}; it must promise {time}. {_letting_go(path, name)}"
    if cause is Cause.LEASE:
        return f"Look at the process of {name}, and start it again if it is gone. {_letting_go(path, name)}"
    if cause is Cause.KEY:
        value = short_repr(stream.weakest_keys[name][0][0])
        return (
            f"{name} must send a row or a bound of {value} at {time}, or let the value go: sink.closeKey({value}). "
            "With openSink(..., keyIdle=...) values that are far behind do not count."
        )
    promise = f"{name} must promise {time}: by sendRowtimeBound, or by a row if its rows are in order."
    return f"{promise} {_letting_go(path, name)}"


def _wanted(needs: int) -> str:
    """The time that a producer must promise; any, if no feed has come to a time yet."""
    return "a time" if needs >= END else show_micros(needs)


def _letting_go(path: str, name: str) -> str:
    end = shell_arguments(path, name)
    return (
        f"If it does not come: rowtime detach {end} (the stream stops waiting; it may come back), or "
        f"rowtime close {end} (it has left, its rows count)."
    )


def _seconds(micros: int) -> str:
    return f"{micros / SECOND_MICROS:.0f} s"

"""The command ``rowtime run``, which hosts an adapter."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from spark_rowtime.adapter.adapter import RESTART_SECONDS, host, restart_seconds
from spark_rowtime.adapter.arguments import from_texts
from spark_rowtime.adapter.loading import load
from spark_rowtime.cli.argument_texts import texts_from_stdin, texts_of
from spark_rowtime.cli.output import log_to_stderr
from spark_rowtime.cli.streams import uncreated
from spark_rowtime.errors import StreamNotFoundError
from spark_rowtime.stream_description import describeStream

_GRACE_SECONDS = 4.0
"""How many seconds an adapter has to receive the signal to end, and again how many it has to end."""
_RETRY_SECONDS = 0.1
_PATIENCE_SECONDS = 20.0
"""How many seconds the adapter of a restarted query waits for the adapter of the previous run to end."""


@click.command()
@click.argument("adapter", metavar="MODULE:CLASS")
@click.argument("stream")
@click.option(
    "--set",
    "arguments",
    multiple=True,
    metavar="KEY=VALUE",
    help="An argument of the adapter, a keyword of its constructor. Other users of the machine can see it: leave "
    "passwords in environment variables that the adapter reads.",
)
@click.option("--producer", help="The name under which the adapter sends.  [default: MODULE:CLASS]")
@click.option(
    "--restarts",
    type=click.IntRange(0, 1000),
    default=len(RESTART_SECONDS),
    show_default=True,
    help="How many times in a row the adapter is restarted without making progress.",
)
@click.option("--create/--no-create", default=False, help="Create the stream from the adapter's schema if needed.")
@click.option("--until-stdin-ends", is_flag=True, help="End when standard input ends (for a parent process).")
@click.option("--arguments-from-stdin", is_flag=True, hidden=True, help="The first line is a JSON object of arguments.")
def run(
    adapter: str,
    stream: str,
    arguments: tuple[str, ...],
    producer: str | None,
    restarts: int,
    create: bool,
    until_stdin_ends: bool,
    arguments_from_stdin: bool,
) -> None:
    """Run an adapter, and restart it from its checkpoint when it fails.

    A programming error, such as a TypeError, ends it at once.
    """
    log_to_stderr()
    texts = {**texts_of(arguments), **(texts_from_stdin() if arguments_from_stdin else {})}
    made = load(adapter, from_here=not arguments_from_stdin)  # a child has the path that its parent has chosen
    keywords = from_texts(made, adapter, texts)
    with terminable() as heard:
        if until_stdin_ends:
            threading.Thread(target=_end_with_stdin, args=(heard,), daemon=True).start()
        patience = _PATIENCE_SECONDS if until_stdin_ends else 0
        if not create:
            _require_there(stream)
        host(
            made,
            stream,
            arguments=keywords,
            producer=producer or adapter,
            delays=restart_seconds(restarts),
            patience=patience,
            create=create,
        )


def _require_there(stream: str) -> None:
    try:
        describeStream(stream)
    except StreamNotFoundError as error:
        raise uncreated(error, "the adapter") from None


@contextmanager
def terminable() -> Iterator[threading.Event]:
    """Makes SIGTERM raise SystemExit in the main thread, once, so that it shuts down in order.

    The event is set when the signal was received.
    """
    heard = threading.Event()

    def terminate(number: int, _frame: object) -> None:
        if not heard.is_set():
            heard.set()
            raise SystemExit(128 + number)  # an instance: C code that calls Python may lose a class with a value

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_with_stdin(heard: threading.Event) -> None:
    """Waits in a separate thread until standard input ends, because the parent ended or wants this process to end.

    It then sends SIGTERM to the main thread, and ends the process by force if the adapter, or a thread that it has
    started, does not end, or what is done at exit takes longer than ``_GRACE_SECONDS``. A signal that arrives just
    before the main thread blocks does not wake it, so the signal is sent repeatedly.
    """
    while os.read(0, 4096):
        pass
    main = threading.main_thread()
    assert main.ident is not None
    for _ in range(round(_GRACE_SECONDS / _RETRY_SECONDS)):
        signal.pthread_kill(main.ident, signal.SIGTERM)
        if heard.wait(_RETRY_SECONDS):
            break
    main.join(_GRACE_SECONDS)
    time.sleep(0 if main.is_alive() else _GRACE_SECONDS)
    os._exit(128 + signal.SIGKILL)

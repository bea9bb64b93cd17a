"""Declaration: what the hosts of a watch take for true of its topics. The stream has it, and it is the same for all."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress

from spark_rowtime.adapter.sinks import Sinks
from spark_rowtime.errors import KafkaUnavailableError, ProducerFencedError
from spark_rowtime.kafka.checkpoint import Checkpoint
from spark_rowtime.kafka.topics import Part
from spark_rowtime.store import open_store

GONE_SECONDS = 12.0
"""How long a host that was killed may count as one that runs; a little more than a session's timeout."""
LOOK_SECONDS = 0.5
"""Seconds between two looks whether other hosts run."""


class Declaration:
    """The declaration of one host. Partition 0 of each topic has the one that counts in its checkpoint.

    Laws:
    - A host writes its declaration before it joins the others, and only in the place of the one that it has read: of
      two that start at once, the stream takes the first (*first*).
    - It compares the two whenever Kafka has given it partitions, as it does with all hosts when one joins. So hosts
      that follow topics at the same time have declared the same (*one*).

    ``others_run`` says whether other hosts have joined; it raises KafkaUnavailableError where the brokers do not say.
    """

    def __init__(self, sinks: Sinks, values: Mapping[str, str], others_run: Callable[[], bool]) -> None:
        self._sinks, self._values, self._others_run = sinks, dict(values), others_run
        self._before: dict[str, Checkpoint | None] = {}

    def look(self, topics: Iterable[str]) -> None:
        """Notes what the stream has of these topics, before this host writes anything."""
        self._before = {topic: self._stored(Part(topic, 0)) for topic in topics}

    def require(self) -> None:
        """Makes this host's declaration that of the stream.

        One that has stayed of hosts that have ended is replaced. A host that was killed is waited for until Kafka no
        longer counts it.

        Raises:
            InvalidOptionError: Hosts that run have declared something else, or one that started at the same time.
            KafkaUnavailableError: The brokers do not say whether others run.
        """
        for topic, before in self._before.items():
            self._require(Part(topic, 0), before)

    def compare(self, topics: Iterable[str]) -> None:
        """Raises InvalidOptionError if another host has written its declaration of a topic over this one's."""
        for topic in topics:
            found = self._stored(Part(topic, 0))
            if found is not None and found.declared != self._values:
                raise found.otherwise_declared(Part(topic, 0).producer, self._values)

    def _require(self, part: Part, before: Checkpoint | None) -> None:
        deadline = time.monotonic() + GONE_SECONDS
        known = before and before.declared
        while (found := self._stored(part)) is not None and found.declared != self._values:
            if found.declared not in (None, known):
                raise found.otherwise_declared(part.producer, self._values)
            if found.declared is None or self._is_left(part, found, last=time.monotonic() > deadline):
                self._replace(part, found)
            else:
                time.sleep(LOOK_SECONDS)

    def _is_left(self, part: Part, found: Checkpoint, *, last: bool) -> bool:
        """Whether nobody follows the topic as it is declared in ``found``.

        A host that has declared it, and has got no partition yet, joins the others in a moment. ``last``: it is not
        asked again.
        """
        try:
            run = self._others_run()
        except KafkaUnavailableError:
            if last:
                raise
            return False
        if run and last:
            raise found.otherwise_declared(part.producer, self._values)
        return not run and (found.followed or last)

    def _replace(self, part: Part, found: Checkpoint) -> None:
        """Writes this host's declaration in the place of ``found``; nothing if that is not there any more."""
        sink = self._sinks.open(part.producer)
        with suppress(ProducerFencedError), ExitStack() as ends:  # another host may do the same
            ends.callback(sink.abandon)
            if Checkpoint.read(sink.checkpoint or "", part.producer) == found:
                sink.flush(checkpoint=found._replace(declared=self._values, end=None).text())

    def _stored(self, part: Part) -> Checkpoint | None:
        with open_store(self._sinks.path) as store:
            info = store.producer(part.producer)
        text = None if info is None else info.checkpoint
        return None if text is None else Checkpoint.read(text, part.producer)

"""An oracle for the stores, written from the laws in docs/semantics.md. It imports nothing of the product.

It keeps the list of what happened and derives everything else from that list by definition, each time again, so it
shares no code, and no way of working, with the stores that are compared with it. Times are whole seconds.
"""

from dataclasses import dataclass, field

NOTHING = float("-inf")
"""The floor of who has promised nothing."""
END = float("inf")
"""The floor of who has promised that no row follows."""
WAITED_FOR = ("expected", "attached", "idle")


@dataclass(frozen=True)
class Happened:
    """One event of the log: expected, joined, sent, left, idled or detached; ``rows``: the rowtimes of its train.

    ``cut``: by partition, the offset that the bound of the event, the departure or the rest, follows. ``anywhere``: the
    event is a bound about all offsets.
    """

    what: str
    who: str
    floor: float = NOTHING
    rows: tuple[int, ...] = ()
    cut: tuple[tuple[int, int], ...] | None = None
    anywhere: bool = False


@dataclass
class Member:
    """What the catalog has of a producer beside the log."""

    holder: str
    epoch: int = 1
    commits: int = 0
    accepted: int = 0
    rejected: int = 0
    lease: int | None = None
    seen: int = 0
    sent: int = 0
    declared: str = ""
    let_go: bool = False


@dataclass
class Oracle:
    """One stream. ``max_lag``, ``idle_timeout``: seconds, None: none; ``now``: the wall clock in seconds.

    At the wall clock ``now``, rows and bounds may be up to ``now`` + ``max_ahead``, if that is not None.
    """

    bounds_before_rows: bool = True
    max_lag: int | None = None
    idle_timeout: int | None = None
    max_ahead: int | None = None
    now: int = 0
    log: list[Happened] = field(default_factory=list)
    floors: list[float] = field(default_factory=lambda: [NOTHING])
    """The bound after each event, as far as it was asked for."""
    members: dict[str, Member] = field(default_factory=dict)
    rejections: list[tuple[str, float, int]] = field(default_factory=list)
    """Producer, bound and rowtime of each rejected row."""
    readers: dict[str, tuple[int, float]] = field(default_factory=dict)
    """The registered readers: all rows of the first ``seq`` events below a time are read."""
    queries: set[str] = field(default_factory=set)
    """Which of them have read a topic beside the stream, too."""
    folded: int = 0
    """The cuts up to this event may have been folded: all queries that were registered then had passed them."""
    horizon: int = 0
    """The last event whose train was removed."""
    forgotten: dict[str, int] = field(default_factory=dict)
    """The epochs of producers that were forgotten."""
    times_forgotten: int = 0

    # What holds after the first ``seq`` events, by definition.

    def status(self, who: str, seq: int) -> str:
        """What the last events of ``who`` make of it; a takeover of an idle producer leaves it idle."""
        status = "never"
        for event in self.log[:seq]:
            if event.who == who:
                stays = event.what == "joined" and status in ("attached", "idle")
                named = {"joined": "attached", "sent": "attached", "idled": "idle"}.get(event.what, event.what)
                named = "complete" if event.floor == END else named
                status = status if stays else named
        return status

    def own_floor(self, who: str, seq: int) -> float:
        """The strongest of the stream's bound when it last joined, and what it has promised since."""
        floor, member = NOTHING, False
        for at, event in enumerate(self.log[:seq]):
            if event.who == who:
                if not member and event.what in ("joined", "sent"):
                    floor, member = self.floor(at), True
                floor = max(floor, event.floor)
                member = event.what not in ("left", "detached", "expected") and event.floor < END
        return floor

    def rows_until(self, seq: int) -> list[int]:
        """All rowtimes of the first ``seq`` events."""
        return [time for event in self.log[:seq] for time in event.rows]

    def floor(self, seq: int) -> float:
        """The stream's bound: the weakest of those who count; it never falls. The log only grows, so it is kept."""
        while len(self.floors) <= seq:
            self.floors.append(max(self.floors[-1], self.reached(len(self.floors))))
        return self.floors[seq]

    def floors_at(self, offsets: dict[int, int]) -> list[float]:
        """The bound of rows in a topic at ``offsets``, after each event: what those who count have promised of them.

        A producer's rows before a cut that is not reached are as it had promised before it sent that cut.
        """
        found, holds = [NOTHING], []
        ends: dict[str, dict[int, int]] = {}
        for at, event in enumerate(self.log, 1):
            if event.anywhere:
                holds = [(who, max(floor, event.floor) if who == event.who else floor) for who, floor in holds]
            if event.cut is not None:
                known = ends.setdefault(event.who, {})
                known |= {p: max(end, known.get(p, 0)) for p, end in event.cut}
                if any(offsets.get(p, 0) < end for p, end in known.items()):
                    holds.append((event.who, self.in_force(event.who, at - 1)))
            found.append(max(found[-1], min([self.floor(at), *(floor for _, floor in holds)])))
        return found

    def passed(self, offsets: dict[int, int]) -> bool:
        """Whether ``offsets`` have reached all cuts that may have been folded."""
        cuts = (event.cut or () for event in self.log[: self.folded])
        return all(offsets.get(partition, 0) >= end for cut in cuts for partition, end in cut)

    def in_force(self, who: str, seq: int) -> float:
        """The floor that a row of ``who`` must respect after ``seq`` events."""
        own = self.own_floor(who, seq) if self.status(who, seq) in ("attached", "idle") else NOTHING
        return max(self.floor(seq), own)

    def reached(self, seq: int) -> float:
        """What the bound would be after ``seq`` events if it could fall."""
        rows, last = self.rows_until(seq), self.log[seq - 1]
        statuses = {who: self.status(who, seq) for who in {event.who for event in self.log[:seq]}}
        nobody = not set(WAITED_FOR) & set(statuses.values())
        if nobody and last.floor == END:
            return END
        if not self.bounds_before_rows and not rows:
            return NOTHING
        if nobody:
            return max(rows, default=NOTHING) if last.what == "left" else NOTHING
        floors = [self.own_floor(who, seq) for who, status in statuses.items() if status == "attached"]
        floors += [NOTHING for status in statuses.values() if status == "expected"]
        lagging = max(floors, default=NOTHING) - (float("inf") if self.max_lag is None else self.max_lag)
        return max(min(floors, default=NOTHING), lagging)

    # What producers do.

    def expect(self, who: str) -> None:
        """The stream is created with this producer."""
        self.members[who] = Member("", 0)
        self.log.append(Happened("expected", who))

    def may_attach(self, who: str, declared: str) -> bool:
        """Whether the order that ``who`` declares is the one that it has declared before, if it has."""
        return who not in self.members or self.members[who].declared in ("", declared)

    def attach(self, who: str, holder: str, lease: int | None, declared: str = "{}") -> int | None:
        """Opens, goes on, or takes over; the epoch. None: refused, since the stream is complete."""
        self.expire()
        status = self.status(who, len(self.log))
        if self.floor(len(self.log)) == END and status != "complete":
            return None
        member = self.members.get(who)
        if member is None:
            member = self.members[who] = Member("", max(self.forgotten.values(), default=0))
        member.declared = declared
        if member.holder != holder or status in ("left", "detached"):
            member.holder, member.epoch = holder, member.epoch + 1
            if status != "complete":
                member.sent, member.let_go = self.now, False
                self.log.append(Happened("joined", who))
        member.lease, member.seen = lease, self.now
        return member.epoch

    def renew(self, who: str, sends: bool) -> bool | None:
        """Shows that it is alive; whether it joined again, as it had been detached. None: the stream is complete."""
        member, end = self.members[who], len(self.log)
        again = self.status(who, end) == "detached" and (sends or not member.let_go)
        if again and self.floor(end) == END:
            return None
        member.seen = self.now
        if again:
            promised, member.sent, member.let_go = self.own_floor(who, end), self.now, False
            self.log.append(Happened("joined", who))
            if promised > self.own_floor(who, end + 1):
                self.log.append(Happened("sent", who, promised))
        return again

    @property
    def ceiling(self) -> float:
        """The last time that is not too far ahead of the wall clock."""
        return float("inf") if self.max_ahead is None else self.now + self.max_ahead

    def refuses(self, who: str, floor: float) -> bool:
        """Whether a bound is new, too far ahead, and not the end of time."""
        return max(self.ceiling, self.own_floor(who, len(self.log))) < floor < END

    def send(
        self,
        who: str,
        trains: list[tuple[int, ...]],
        floor: float,
        late: tuple[int, ...],
        *,
        idle: bool = False,
        behind: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        """One commit: rows below the stream's bound are rejected, trains carry the bound that is true after them.

        Rows that are too far ahead of the wall clock are rejected, too.

        ``idle``: the stream does not wait for the producer behind it; ``behind``: the cut at which it rests.
        """
        member = self.members[who]
        member.seen = self.now
        self.expire(but=who)
        bound, before = self.floor(len(self.log)), self.own_floor(who, len(self.log))
        in_force = max(bound, before if self.status(who, len(self.log)) in ("attached", "idle") else NOTHING)
        self.rejections += [(who, floor, time) for time in late]
        ceiling = self.ceiling
        self.rejections += [(who, ceiling, time) for train in trains for time in train if time > ceiling]
        self.rejections += [
            (who, bound, time) for train in trains for time in train if time < bound and time <= ceiling
        ]
        kept = [fit for train in trains if (fit := tuple(time for time in train if bound <= time <= ceiling))]
        for at, train in enumerate(kept):
            least_later = min((time for later in kept[at + 1 :] for time in later), default=floor)
            self.log.append(Happened("sent", who, max(before, min(floor, least_later)), train))
        awake = self.status(who, len(self.log)) in ("attached", "complete")
        if not kept and (floor > before or not (awake or idle)):
            self.log.append(Happened("sent", who, max(in_force, floor)))
        if idle and self.status(who, len(self.log)) == "attached":
            self.log.append(Happened("idled", who, cut=behind))
        if kept or floor > before:
            member.sent = self.now
        member.commits += 1
        member.accepted += sum(map(len, kept))
        member.rejected = sum(name == who for name, _, _ in self.rejections)

    def promise(self, who: str, bounds: list[tuple[float, tuple[tuple[int, int], ...] | None]]) -> None:
        """One commit of bounds, each with its cut or about all offsets."""
        member = self.members[who]
        member.seen = self.now
        self.expire(but=who)
        before = self.own_floor(who, len(self.log))
        for floor, cut in bounds:
            self.log.append(Happened("sent", who, floor, cut=cut, anywhere=cut is None))
        if bounds[-1][0] > before:
            member.sent = self.now
        member.commits += 1

    def leave(self, who: str, cut: tuple[tuple[int, int], ...] | None = None) -> None:
        """The producer closes; with ``cut``, behind its last row."""
        if self.status(who, len(self.log)) not in ("left", "complete"):
            self.members[who].seen = self.now
            self.log.append(Happened("left", who, cut=cut))

    def detach(self, who: str) -> None:
        """The producer is let go by hand."""
        if self.status(who, len(self.log)) in WAITED_FOR:
            self.members[who].let_go = True
            self.log.append(Happened("detached", who))

    def close(self, who: str, complete: bool) -> None:
        """Somebody else declares that the producer has left, or that it is complete. Its holder is fenced."""
        status = self.status(who, len(self.log))
        if status == "complete" or (status == "left" and not complete):
            return
        self.members[who].holder, self.members[who].epoch = "", self.members[who].epoch + 1
        self.members[who].seen = self.now
        self.log.append(Happened("sent", who, END) if complete else Happened("left", who))

    def expire(self, but: str = "") -> None:
        """Leases that ended and idle times that passed become events, the slowest producer last."""
        seq, due = len(self.log), []
        for who, member in self.members.items():
            status = self.status(who, seq)
            if who == but or status not in ("attached", "idle"):
                continue
            if member.lease is not None and self.now > member.seen + member.lease:
                due.append((-max(self.own_floor(who, seq), NOTHING), who, "detached"))
            elif self.idle_timeout is not None and status == "attached" and self.now > member.sent + self.idle_timeout:
                due.append((-max(self.own_floor(who, seq), NOTHING), who, "idled"))
        self.log += [Happened(what, who) for _, who, what in sorted(due)]

    # What is removed.

    def gc(self, force: bool) -> tuple[int, int]:
        """Removes the longest beginning of trains that nobody needs, and forgets who left a day ago.

        Whoever begins now in the order of rowtimes needs what lies above the bound. ``force``: readers do not count.
        Returns how many rows and producers are gone.
        """
        end, before = len(self.log), len(self.rows_until(self.horizon))
        passed = (seq for name, (seq, _) in self.readers.items() if name in self.queries)
        self.folded = max(self.folded, min(passed, default=0))
        positions = [(end, self.floor(end) + 1), *([] if force else self.readers.values())]
        for seq, event in enumerate(self.log[self.horizon :], self.horizon + 1):
            if any(seq > read or time >= below for read, below in positions for time in event.rows):
                break
            self.horizon = seq if event.rows else self.horizon
        gone = [who for who, member in self.members.items() if self.forgettable(who, member)]
        self.forgotten |= {who: self.members.pop(who).epoch for who in gone}
        self.times_forgotten += len(gone)
        return len(self.rows_until(self.horizon)) - before, len(gone)

    def forgettable(self, who: str, member: Member) -> bool:
        """Whether ``who`` left more than a day ago, and nothing of it is kept but its rows."""
        rejected = any(name == who for name, _, _ in self.rejections)
        return self.status(who, len(self.log)) == "left" and member.seen < self.now - 86_400 and not rejected

    def is_lost(self, position: tuple[int, float]) -> bool:
        """Whether rows that are not read there may have been removed."""
        gone = max(self.rows_until(self.horizon), default=NOTHING)
        return position[0] < self.horizon or position[1] <= gone

    # What a reader gets.

    def rows_between(self, after: tuple[int, float], upto: tuple[int, float]) -> list[tuple[int, int]]:
        """(seq, rowtime) of the rows in the region ``upto`` and not in ``after``: trains <= seq, rowtime < cut."""

        def within(seq: int, time: int, region: tuple[int, float]) -> bool:
            return seq <= region[0] and time < region[1]

        found = [(seq, time) for seq, event in enumerate(self.log, 1) for time in event.rows]
        return [(seq, time) for seq, time in found if within(seq, time, upto) and not within(seq, time, after)]

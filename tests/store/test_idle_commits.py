"""Commits after which the stream does not wait for their producer: it stops holding others, and moves nothing."""

from dataclasses import replace

from spark_rowtime.bounds.clock import Status
from spark_rowtime.store.base import Store
from tests.store.streams import NewStream, Writer, at, infos, read


def rest(writer: Writer, *trains: list[float], floor: float | None = None, checkpoint: str = "c") -> int:
    """Commits the trains; from then on the producer is idle. Returns the seq of the log."""
    return writer.send(*trains, floor=floor, checkpoint=checkpoint, idle=True).seq


def status(store: Store, name: str) -> Status:
    return next(one.status for one in infos(store) if one.name == name)


def test_one_that_rests_stops_holding_the_others(new_stream: NewStream) -> None:
    store = new_stream()()
    quiet, busy = Writer(store, "quiet"), Writer(store, "busy")
    busy.send([20], floor=20)
    rest(quiet, [10], floor=5)
    assert status(store, "quiet") is Status.IDLE
    assert store.head().floor == at(20)
    busy.send([30], floor=30)
    assert store.head().floor == at(30)
    quiet.send([40], floor=31)
    busy.send([50], floor=50)
    assert status(store, "quiet") is Status.ATTACHED
    assert store.head().floor == at(31), "it counts again"


def test_where_all_rest_the_bound_stays_and_a_row_at_it_is_in_time(new_stream: NewStream) -> None:
    """Also where it has never been as far as the largest row."""
    store = new_stream()()
    one, two = Writer(store, "one"), Writer(store, "two")
    two.send([60], floor=50)
    one.send([30], floor=20)
    rest(two, floor=50)
    rest(one, floor=20)
    assert store.head().floor == at(20)
    assert one.send([20], floor=20).rejected == ()
    assert sorted(read(store)) == [20, 30, 60]


def test_a_checkpoint_of_one_that_rests_is_no_event(new_stream: NewStream) -> None:
    store = new_stream()()
    quiet = Writer(store, "quiet")
    before = rest(quiet, [10], floor=10)
    assert rest(quiet, floor=10, checkpoint="further") == before
    assert status(store, "quiet") is Status.IDLE
    assert next(one.checkpoint for one in infos(store)) == "further"
    quiet.send(floor=10, checkpoint="again")
    assert status(store, "quiet") is Status.ATTACHED, "a commit that is not idle counts"


def test_such_a_commit_again_changes_nothing(new_stream: NewStream) -> None:
    store = new_stream()()
    quiet = Writer(store, "quiet")
    commit = quiet.commit([10], floor=10, idle=True)
    assert store.commit(commit) == store.commit(commit)
    assert status(store, "quiet") is Status.IDLE
    assert read(store) == [10]


def test_one_that_is_taken_over_or_complete(new_stream: NewStream) -> None:
    """A takeover leaves it idle; one that is complete does not become idle."""
    store = new_stream()()
    rest(Writer(store, "quiet"), [10], floor=10)
    taken = Writer(store, "quiet", session="another")
    assert status(store, "quiet") is Status.IDLE
    store.commit(replace(taken.complete_commit(), idle=True))
    assert status(store, "quiet") is Status.COMPLETE


def test_one_that_has_left_stays_so_by_such_a_commit_without_rows(new_stream: NewStream) -> None:
    store = new_stream()()
    gone = Writer(store, "gone")
    gone.send([10], floor=10)
    gone.leave()
    before = store.head()
    rest(gone, floor=10, checkpoint="further")
    assert store.head() == before
    assert status(store, "gone") is Status.LEFT

"""Several processes on one stream: real ones."""

from collections.abc import Callable

import pytest

from spark_rowtime.errors import ProducerFencedError
from spark_rowtime.store.difference import rows_between
from spark_rowtime.store.local import LocalStore
from spark_rowtime.store.position import Position
from tests.store.processes import run, start
from tests.store.streams import EMPTY, Writer, infos, read, seconds

Open = Callable[..., LocalStore]
COMMITS = 400
WRITE = """
    name, commits = sys.argv[2], int(sys.argv[3])
    writer = Writer(open_local(path), name)
    print("ready", flush=True)
    sys.stdin.readline()
    for second in range(1, commits + 1):
        writer.send([second, second + 0.5], floor=second)
    print(writer.store.head().seq)
    writer.store.close()
"""


def test_two_processes_write_and_one_reads(open_here: Open, local_path: str) -> None:
    store = open_here()
    writers = [start(WRITE, local_path, name, COMMITS) for name in "ab"]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()

    by_producer, at = follow(store, 2 * COMMITS)
    for writer in writers:
        assert writer.communicate()[1] == ""

    expected = [s for second in range(1, COMMITS + 1) for s in (second, second + 0.5)]
    accepted = {p.name: p.accepted for p in infos(store)}
    assert by_producer == {"a": expected, "b": expected}
    assert accepted == {"a": 2 * COMMITS, "b": 2 * COMMITS}
    assert store.head().seq == at.seq == 2 * COMMITS + 2


def follow(store: LocalStore, trains: int) -> tuple[dict[str, list[float]], Position]:
    """Reads in order of arrival until so many trains came; no row lies below a floor seen before it."""
    rows: dict[str, list[float]] = {}
    at, count = EMPTY, 0
    while count < trains:
        assert store.wait(at.seq, 30)
        head = store.head()
        to = Position(head.seq, None, head.floor)
        for piece in store.slices(at, to):
            got = rows_between(store.read(piece), piece.seq, at, to)
            assert at.floor is None or piece.least >= at.floor
            rows.setdefault(piece.producer, []).extend(seconds(got))
            count += 1
        assert (to.floor or 0) >= (at.floor or 0)
        at = to
    return rows, at


def test_a_producer_taken_over_by_another_process_is_fenced(open_here: Open, local_path: str) -> None:
    writer = Writer(open_here(), "a")
    writer.send([1], floor=1)
    run('Writer(open_local(path), "a", session="other").send([2], floor=2)', local_path)
    with pytest.raises(ProducerFencedError):
        writer.send([3], floor=3)
    assert read(writer.store) == [1, 2]


def test_a_forked_child_is_refused_and_may_open_its_own(open_here: Open, local_path: str) -> None:
    printed = run(
        """
        from spark_rowtime.errors import SinkClosedError
        store = open_local(path)
        Writer(store, "a").send([1], floor=1)
        child = os.fork()
        if child == 0:
            for call in (store.head, lambda: store.stage(batch(1)), store.snapshot):
                try:
                    call()
                except SinkClosedError as error:
                    print(error, flush=True)
            store.close()
            own = open_local(path)
            Writer(own, "b").send([2])
            own.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        Writer(store, "a").send([3], floor=3)
        store.close()
        """,
        local_path,
    )
    assert printed.count("Open it in each process") == 3
    assert read(open_here()) == [1, 2, 3]


def test_a_task_reads_a_piece_and_stages_rows_for_another_process(open_here: Open, local_path: str) -> None:
    """As Spark does it: pieces and staged rows cross processes as pickles."""
    store = open_here()
    writer = Writer(store, "a")
    writer.send([1, 2], floor=2)
    task = """
        import pickle
        piece = pickle.loads(bytes.fromhex(sys.argv[2]))
        store = open_local(path)
        staged = store.stage(store.read(piece))
        store.close()
        print(pickle.dumps(staged).hex())
    """
    import pickle

    (piece,) = store.slices(EMPTY, Position(9, None, None))
    staged = pickle.loads(bytes.fromhex(run(task, local_path, pickle.dumps(piece).hex())))
    commit = writer.commit(floor=2)
    store.commit(type(commit)("a", commit.epoch, commit.number, (staged,), commit.floor))
    assert store.head().rows == 3
    assert store.rejected().num_rows == 1


def test_processes_that_create_one_stream(tmp_path: object) -> None:
    script = """
        from spark_rowtime.errors import StreamExistsError
        try:
            create_local(path, SCHEMA, StreamSettings())
            print("made")
        except StreamExistsError:
            print("there")
    """
    made = [start(script, f"{tmp_path}/s") for _ in range(3)]
    assert sorted(p.communicate()[0] for p in made) == ["made\n", "there\n", "there\n"]

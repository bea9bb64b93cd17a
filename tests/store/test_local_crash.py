"""Law 8: what a crashed writer left half-written is never read, and the next writer works."""

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spark_rowtime.bounds.topic_cut import TopicCut
from spark_rowtime.errors import StoreUnavailableError
from spark_rowtime.kafka.cuts import CutFloors
from spark_rowtime.store.local import LocalStore, check_local, producers
from spark_rowtime.store.position import Position
from spark_rowtime.store.snapshot import READS_TOPIC
from tests.store.processes import run, start
from tests.store.streams import Writer, at, batch, names, read

Open = Callable[..., LocalStore]
KILLED = -signal.SIGKILL


def test_law_8_a_stage_that_was_not_committed(open_here: Open, local_path: str) -> None:
    run(
        """
        writer = Writer(open_local(path), "a")
        writer.send([1], floor=1)
        writer.commit([2, 3], floor=3)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        local_path,
        code=KILLED,
    )
    check_and_go_on(open_here())


def test_law_8_bytes_that_were_half_written(open_here: Open, local_path: str) -> None:
    run(
        """
        writer = Writer(open_local(path), "a")
        writer.send([1], floor=1)
        pwrite = os.pwrite
        def torn(fd, data, offset):
            pwrite(fd, bytes(data)[: len(data) // 2], offset)
            os.kill(os.getpid(), signal.SIGKILL)
        os.pwrite = torn
        writer.commit([2, 3], floor=3)
        """,
        local_path,
        code=KILLED,
    )
    check_and_go_on(open_here())


def test_law_8_a_transaction_that_was_half_done(open_here: Open, local_path: str) -> None:
    run(
        """
        from spark_rowtime.store.local import producers
        writer = Writer(open_local(path), "a")
        writer.send([1], floor=1)
        producers.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        writer.send([2], [3], floor=3)
        """,
        local_path,
        code=KILLED,
    )
    check_and_go_on(open_here())


@pytest.mark.parametrize("after", [1, 2])
def test_law_8_a_death_around_the_commit(open_here: Open, local_path: str, after: int) -> None:
    """Just before the catalog's commit nothing has happened; just after it everything, and a retry is none."""
    run(
        """
        from spark_rowtime.store.local.catalog import Catalog
        writer = Writer(open_local(path), "a")
        writer.send([1], floor=1)
        execute = writer.store._catalog.execute
        def dying(sql, values=()):
            if sql == "COMMIT":
                for _ in range(int(sys.argv[2]) - 1):
                    execute(sql)
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(sql, values)
        writer.store._catalog.execute = dying
        writer.send([2], [3], floor=3)
        """,
        local_path,
        after,
        code=KILLED,
    )
    store = open_here()
    assert read(store) == ([1] if after == 1 else [1, 2, 3])
    writer = Writer(store, "a", session="next")
    writer.number = 1
    writer.send([2], [3], floor=3)
    assert read(store) == [1, 2, 3]


FOLD = """
    left, store = int(sys.argv[2]), open_local(path)
    execute = store._catalog.execute
    def dying(sql, values=()):
        global left
        if sql.startswith(("DELETE", "INSERT", "COMMIT")):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return execute(sql, values)
    store._catalog.execute = dying
    store.gc()
    print("folded")
"""


@pytest.mark.long
def test_law_8_a_death_between_the_steps_of_a_fold(open_here: Open, local_path: str) -> None:
    """All of the cuts are folded, or none; a query that has passed them gets its bounds. The next gc folds them."""
    store, ends = open_here(), [{"orders": {0: zero, 1: one}} for zero in range(5) for one in range(5)]
    for partition, name in enumerate("ab"):
        writer = Writer(store, name)
        for end in range(1, 5):
            writer.promise((end, TopicCut({"orders": {partition: end}})))
    store.keep("query", Position(6, None, None), READS_TOPIC)
    seq, passed = store.head().seq, CutFloors(store).floorAt(store.head().seq, ends[-1])
    before = [CutFloors(store).floorAt(seq, offsets) for offsets in ends]
    step, output = 0, ""
    while not output:
        step += 1
        process = start(FOLD, local_path, step)
        output, errors = process.communicate()
        assert process.returncode == (0 if output else KILLED), errors
        check_local(local_path)
        now = [CutFloors(open_here()).floorAt(seq, offsets) for offsets in ends]
        assert now[-1] == passed
        assert now == before or len([*open_here().cuts()]) < 8
    assert step > 5, "some steps were met"
    assert len([*open_here().cuts()]) < 8


def test_law_8_garbage_at_the_end_of_a_segment(open_here: Open, local_path: str) -> None:
    store = open_here()
    Writer(store, "a").send([1], floor=1)
    (segment,) = (Path(local_path) / "segments").iterdir()
    with segment.open("ab") as file:
        file.write(b"\xff\xff\xff\xff torn")
    check_and_go_on(open_here())


def check_and_go_on(store: LocalStore) -> None:
    """One commit, of the row at 1, has landed; the next writer takes the producer over."""
    assert read(store) == [1]
    assert store.head() == (2, at(1), at(1), 1)
    writer = Writer(store, "a", session="next")
    assert (writer.epoch, writer.number) == (2, 1)
    writer.send([4], floor=4)
    assert read(store) == [1, 4]


def test_a_write_that_fails_counts_for_nothing(open_here: Open, local_path: str) -> None:
    """A limit on the size of files stands for a full disk."""
    printed = run(
        """
        from spark_rowtime.errors import StoreUnavailableError
        writer = Writer(open_local(path), "a")
        writer.send([1], floor=1)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        for size in (1000, 1):
            try:
                writer.send(range(2, 2 + size), floor=2)
            except StoreUnavailableError as error:
                print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.store.close()
        """,
        local_path,
    )
    assert printed.count("Nothing of this call was committed") == 2
    writer = Writer(open_here(), "a")
    assert (writer.epoch, writer.number) == (1, 1)
    writer.send([2, 3], floor=3)
    assert read(open_here()) == [1, 2, 3]
    (file,) = (Path(local_path) / "segments").iterdir()
    assert [b.num_rows for b in pa.ipc.open_stream(file.read_bytes())][-1] == 2


def test_the_same_handle_goes_on_after_a_write_that_failed(open_here: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had folded into its clock is forgotten, also where another has since written as much."""
    store = open_here()
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fail)
        with pytest.raises(StoreUnavailableError):
            store.stage(batch(1))
        broken.setattr(producers, "save", fail)
        with pytest.raises(StoreUnavailableError):
            Writer(store, "a")
    Writer(open_here(), "b")
    assert list(store.snapshot().logged_clock.producers) == ["b"]
    Writer(store, "a").send([1], floor=1)
    assert read(store) == [1]


def test_a_creation_that_fails_leaves_nothing(tmp_path: Path) -> None:
    printed = run(
        """
        from spark_rowtime.errors import StoreUnavailableError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        try:
            create_local(path, SCHEMA, StreamSettings())
        except StoreUnavailableError as error:
            print(error)
        """,
        str(tmp_path / "s"),
    )
    assert "Nothing of this call was committed" in printed
    assert names(tmp_path) == []


def fail(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_crashed_creation_is_not_in_the_way(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    run(
        """
        from pathlib import Path
        Path.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        create_local(path, SCHEMA, StreamSettings())
        """,
        path,
        code=KILLED,
    )
    assert names(tmp_path) != []
    run(
        """
        create_local(path, SCHEMA, StreamSettings())
        Writer(open_local(path), "a").send([1])
        """,
        path,
    )


def test_law_8_room_that_was_reserved_behind_a_large_train(open_here: Open, local_path: str) -> None:
    run(
        """
        writer = Writer(open_local(path), "a")
        writer.send([1 + n / 1e6 for n in range(100_000)], floor=2)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        local_path,
        code=KILLED,
    )
    (file,) = (Path(local_path) / "segments").iterdir()
    assert file.stat().st_size > 8 << 20
    assert [rows.num_rows for rows in pa.ipc.open_stream(file)] == [100_000]
    assert check_local(local_path).damage == []
    Writer(open_here(), "a", session="next").send([3], floor=3)
    assert len(read(open_here())) == 100_001


def test_a_free_segment_is_used_again_and_a_dead_writers_is_not(open_here: Open, local_path: str) -> None:
    for second in range(1, 5):
        store = open_here()
        Writer(store, "a", session=str(second)).send([second], floor=second)
        store.close()
    segments = f"{local_path}/segments"
    assert len(names(segments)) == 1
    assert read(open_here()) == [1, 2, 3, 4]

    one, two = open_here(), open_here()
    one.stage(batch(5))
    two.stage(batch(5))
    assert len(names(segments)) == 2
    run("open_local(path).stage(batch(5)); os._exit(0)", local_path)
    run("open_local(path).stage(batch(5)); os._exit(0)", local_path)
    assert len(names(segments)) == 4

"""A layer between the store and the file system that records what a loss of power would leave."""

import itertools
import os
import shutil
import threading
from pathlib import Path
from typing import Any

from spark_rowtime.store.local import open_local
from tests.store.streams import Writer


class Outage:
    """Records, for each file in the folders of rows and marks, how many bytes are synced, and whether its name is.

    Law: what is not synced may be lost. It intercepts os.open, os.close, os.pwrite, os.pwritev, os.ftruncate,
    os.fsync and os.fdatasync, with which the store writes. SQLite guarantees its own syncs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._paths: dict[int, Path] = {}
        self.bytes: dict[str, int] = {}
        """How far each file, by name, is synced."""
        self.names: set[str] = set()
        """The names that are synced."""
        for name in ("open", "close", "pwrite", "pwritev", "ftruncate", "fsync", "fdatasync"):
            setattr(os, name, self._watched(getattr(self, f"_{name}"), getattr(os, name)))

    def _watched(self, note: Any, call: Any) -> Any:
        def watched(*arguments: Any, **more: Any) -> Any:
            result = call(*arguments, **more)
            note(result, *arguments)
            return result

        return watched

    def _open(self, fd: int, *_: Any) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()  # it may have been opened relative to a folder
        if self._folder in path.parents or path == self._folder:
            self._paths[fd] = path
            if not path.is_dir():
                self.bytes.setdefault(path.name, 0)

    def _close(self, _: None, fd: int) -> None:
        self._paths.pop(fd, None)

    def _pwrite(self, _: int, fd: int, _data: Any, offset: int) -> None:
        self._unsynced_from(fd, offset)

    _pwritev = _pwrite

    def _ftruncate(self, _: None, fd: int, length: int) -> None:
        self._unsynced_from(fd, length)

    def _unsynced_from(self, fd: int, offset: int) -> None:
        if fd in self._paths:
            name = self._paths[fd].name
            self.bytes[name] = min(self.bytes[name], offset)

    def _fsync(self, _: None, fd: int) -> None:
        path = self._paths.get(fd)
        if path is not None and path.is_dir():
            self.names |= {entry.name for entry in path.iterdir()}
        elif path is not None:
            self.bytes[path.name] = os.fstat(fd).st_size

    _fdatasync = _fsync

    def copy(self, to: Path) -> str:
        """Copies the stream's directory as a loss of power would leave it now. Returns where the copy is."""
        shutil.copytree(self._folder.parent, to)
        for file in (to / self._folder.name).iterdir():
            if file.name in self.names:
                os.truncate(file, self.bytes[file.name])
            else:
                file.unlink()
        return str(to)


def tell(pipe: Any, path: str) -> None:
    """Writers with durability power, the first after one without; trains of several kinds, in new and old segments.

    Small ones, large ones, several a commit, and one that is cut, since a row of it is late. Sends, for each commit,
    the seqs before and after it, whether it is whole, and copies as a loss of power would leave at two moments: before
    the catalog commits, and after the call returns. One that is cut has had a transaction that looked at it alone.
    """
    outage, second = Outage(Path(path) / "segments"), 1.0
    moments: list[str] = []
    copies = (Path(path).with_name(f"copy-{n}") for n in itertools.count())

    def note(sql: str) -> None:
        if sql == "COMMIT":
            moments.append(outage.copy(next(copies)))

    for durability in ("process", "power", "power"):
        store = open_local(path, durability)
        writer = Writer(store, "a", session=str(second))
        store._catalog._db.set_trace_callback(note)
        for full in (store._writer._full, 1):
            store._writer._full = full
            for counts in ((1,), (5000,), (1, 5000, 1), ()):
                moments.clear()
                trains = [[second + n / 1e6 for n in range(count)] for count in counts] or [[second, 0.5]]
                before, seq = store.head().seq, writer.send(*trains, floor=second).seq
                if durability == "power":
                    pipe.send((before, seq, bool(counts), [*moments, outage.copy(next(copies))]))
                second += 1
        store._writer._full = 256 << 20
        writer.send([second], floor=second)
        store.close()


def tell_of_threads(pipe: Any, path: str) -> None:
    """Threads with durability power that commit at once, into segments that are full all the time.

    Sends, again and again, a copy as a loss of power would leave, and what had been acknowledged until then. Nobody
    writes while it is made, so that it is of one moment.
    """
    outage, acknowledged, copies = Outage(Path(path) / "segments"), list[float](), range(20)
    store = open_local(path, "power")
    store._writer._full, store._writer._most_unsynced = 20_000, 6_000
    ended = threading.Event()

    def work(writer: Writer, second: float) -> None:
        while not ended.is_set():
            writer.send([second] * (1 + int(second) % 40), floor=second)
            acknowledged.extend([second] * (1 + int(second) % 40))
            second += 4

    writers = [Writer(store, f"p{n}") for n in range(1, 5)]  # before one sends: the rows of who comes later are late
    threads = [threading.Thread(target=work, args=(writer, float(n))) for n, writer in enumerate(writers, 1)]
    for thread in threads:
        thread.start()
    for number in copies:
        before = store.head().seq
        while store.head().seq < before + 20:
            store.wait(store.head().seq, 1)
        with store._guard, store._writer_guard:
            known = list(acknowledged)
            pipe.send((outage.copy(Path(path).with_name(f"threads-{number}")), known))
    ended.set()
    for thread in threads:
        thread.join()
    store.close()

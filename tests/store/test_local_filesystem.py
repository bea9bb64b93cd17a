"""The local store refuses network file systems by their type, and names the way out."""

from pathlib import Path

import pytest

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.store import create_store, open_store
from spark_rowtime.store.local import filesystem
from spark_rowtime.store.local.filesystem import file_system, require_local_disk
from spark_rowtime.store.settings import StreamSettings
from tests.store.streams import SCHEMA

MOUNTS = """
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:44 / /mnt/data rw,relatime shared:20 - nfs4 server:/export rw,vers=4.2
31 30 8:2 / /mnt/data/local rw - xfs /dev/sdb rw
32 22 0:45 / /mnt/Shared\\040Files rw - cifs //server/share rw
33 22 0:46 / /home/ann/remote rw - fuse.sshfs ann@server: rw
34 22 8:3 / /media/usb rw - fuseblk /dev/sdc1 rw
35 22 0:50 / /mnt/twice rw - ext4 /dev/sdd rw
36 35 0:51 / /mnt/twice rw - nfs server:/b rw
37 22 0:52 / /mnt/c rw - 9p C:\\134 rw,trans=fd
38 22 0:53 / /Users rw - virtiofs home rw
39 22 0:54 / /mnt/host rw - fuse.vmhgfs-fuse vmhgfs-fuse rw
40 22 0:55 / /mnt/bucket rw - fuse bucket rw
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS.lstrip())
    return file


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/mnt/data/orders.rowtime", "nfs4"),
        ("/mnt/Shared Files/orders", "cifs"),
        ("/home/ann/remote/a/b", "fuse.sshfs"),
        ("/mnt/twice/orders", "nfs"),
        ("/mnt/c/Users/ann/orders", "9p"),
        ("/Users/ann/orders", "virtiofs"),
        ("/mnt/host/orders", "fuse.vmhgfs-fuse"),
        ("/mnt/bucket/orders", "fuse"),
    ],
)
def test_a_network_file_system_is_refused_by_its_type(mounts: Path, place: str, kind: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"network file system \({kind}\).*postgresql://") as caught:
        require_local_disk(Path(place), mounts)
    assert caught.value.values["value"] == kind


@pytest.mark.parametrize("place", ["/mnt/database", "/mnt/data/local/orders", "/media/usb/orders", "/home/ann"])
def test_a_local_file_system_is_not(mounts: Path, place: str) -> None:
    require_local_disk(Path(place), mounts)


def test_a_system_that_does_not_tell_is_not_refused(tmp_path: Path) -> None:
    require_local_disk(tmp_path, tmp_path / "nothing")


def test_the_file_system_of_this_machine_is_known(tmp_path: Path) -> None:
    assert file_system(Path("/proc/self")) == "proc"
    assert file_system(tmp_path / "not" / "there")


def test_a_stream_is_neither_created_nor_opened_there(
    tmp_path: Path, mounts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "orders")
    create_store(path, SCHEMA, StreamSettings())
    real = f"47 22 0:60 / {tmp_path} rw - nfs4 server:/tmp rw\n"
    mounts.write_text(MOUNTS.lstrip() + real)
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)
    for call in (lambda: open_store(path), lambda: create_store(path + "2", SCHEMA, StreamSettings())):
        with pytest.raises(InvalidOptionError, match="nfs4"):
            call()
    assert not Path(path + "2").exists()

"""Refuses network file systems: a catalog that processes of several machines use there would be corrupted silently.

SQLite's write-ahead log needs memory that all its processes share, and locks that hold, so all must be on one machine.
"""

import os
import re
import sys
from pathlib import Path

from spark_rowtime.errors import InvalidOptionError

MOUNTS = Path("/proc/self/mountinfo")
"""Linux lists the mounted file systems of this process in this file."""
NETWORK = frozenset((
    "nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "ceph", "lustre", "gpfs", "gfs2", "ocfs2",
    "beegfs", "orangefs", "pvfs2", "glusterfs", "panfs", "coda", "9p", "virtiofs", "vboxsf", "prl_fs", "fuse",
))  # fmt: skip
"""The types of file systems that several machines may mount, or that a virtual machine shares with its host (9p,
virtiofs, vboxsf, prl_fs): the memory and the locks of one side do not reach the other. FUSE may be anything, such as
sshfs or s3fs; a disk that FUSE reads for this machine alone is ``fuseblk``."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def require_local_disk(place: Path, mounts: Path | None = None) -> None:
    """Raises InvalidOptionError if ``place``, which need not exist, is on a network file system. Knows Linux only."""
    kind = file_system(place, mounts or MOUNTS) if sys.platform == "linux" else None
    if kind is not None and kind.partition(".")[0] in NETWORK:
        raise InvalidOptionError(
            f"{place} is on a network file system ({kind}). The catalog of a stream in a directory would be corrupted "
            "there, silently, as soon as two machines use it. Use a directory on a local disk; or, if several machines "
            "share the stream, a database: postgresql://host:port/database/stream.",
            path=str(place),
            option="path",
            value=kind,
        )


def file_system(place: Path, mounts: Path = MOUNTS) -> str | None:
    """Returns the type of the file system that ``place`` is on, or would be on; None if it is not known."""
    real = os.path.realpath(place)
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    found: tuple[int, str | None] = (-1, None)
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point, kind = _plain(fields.split(" ")[4]), rest.partition(" ")[0]
        if _within(real, point) and len(point) >= found[0]:  # of several at one place the last one hides the others
            found = len(point), kind
    return found[1]


def _within(path: str, point: str) -> bool:
    return point in ("/", path) or path.startswith(point + "/")


def _plain(point: str) -> str:
    """Returns a mount point without the escapes for blanks and backslashes."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), point)

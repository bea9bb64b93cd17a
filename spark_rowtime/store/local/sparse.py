"""Which parts of a file have data: a file may be long, and mostly holes, which take no place on the disk.

A hole alone is no damage. A file system that compresses, and some programs that restore a copy, keep nothing of zeros,
and a train of nulls has many.
"""

import errno
import os

MOST_HOLES = 64 << 20
"""So many bytes of holes are always allowed: with 65,536 rows, a train is as long if each row has 1000 bytes."""
_TIMES = 64
"""Beyond that, how many times as long as its data a part of a file may be."""


def is_there(fd: int, start: int, end: int) -> bool:
    """Returns False if the part of the file from ``start`` to ``end`` is nearly all holes, and long.

    Where the file system does not tell, everything is there. The position of the descriptor stays.
    """
    if end - start <= MOST_HOLES:
        return True
    try:
        before = os.lseek(fd, 0, os.SEEK_CUR)
        data = _data(fd, start, end)
        os.lseek(fd, before, os.SEEK_SET)
    except OSError:
        return True
    return end - start - data <= MOST_HOLES or data * _TIMES >= end - start


def _data(fd: int, start: int, end: int) -> int:
    """Returns how many bytes of data there are."""
    data = 0
    while start < end:
        try:
            begin = os.lseek(fd, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # the rest is a hole
                return data
            raise
        start = os.lseek(fd, begin, os.SEEK_HOLE)
        data += max(min(start, end) - begin, 0)
    return data

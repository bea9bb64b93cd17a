"""Classes of trains by the width of their span of rowtimes, by which an index finds the trains between two positions.

Trains that are new since a position are a range of seq. Older trains with unread rows are those whose span of rowtimes
[least, largest] overlaps [after.cut, upto.cut). No sort order of the spans answers that query, because a train of a
producer without order may span any times. So spans are divided into classes by width: class k holds widths below
4 ** k. Within a class, the largest rowtime of a span that has a row before the cut lies less than 4 ** k after the cut.
The query is therefore one short range of the index (width class, largest, least) per class, however many trains lie on
either side of that range.
"""

NEVER_MICROS = 1 << 60
"""Later than every rowtime. Stands for the cut of a position without one."""
CLASSES = 31
"""The number of classes that spans of rowtimes may have."""
REACHES = ", ".join(f"({k}, {4**k - 2})" for k in range(CLASSES))
"""SQL rows: each class, and how far after a cut the largest rowtime of its spans may lie."""


def width_class(least: int, largest: int) -> int:
    """Returns the class of a span: the least k with largest - least < 4 ** k."""
    return ((largest - least).bit_length() + 1) // 2

"""Sends a message whose header has any bytes for a name, as clients in C and Go can."""

import ctypes
from pathlib import Path

from confluent_kafka import cimpl

TOPIC, PARTITION, VALUE, COPY, HEADER, END = 1, 3, 4, 7, 9, 0
"""Kinds of arguments of ``rd_kafka_producev``."""
PRODUCER, COPIED, WAIT_MS = 0, 2, 240_000


def send_with_header(servers: str, topic: str, value: bytes, name: bytes) -> None:
    """Sends a message into partition 0."""
    lib, error = _library(), ctypes.create_string_buffer(512)
    lib.rd_kafka_conf_new.restype = lib.rd_kafka_new.restype = ctypes.c_void_p
    conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
    lib.rd_kafka_conf_set(conf, b"bootstrap.servers", servers.encode(), error, ctypes.c_size_t(512))
    client = ctypes.c_void_p(lib.rd_kafka_new(PRODUCER, conf, error, ctypes.c_size_t(512)))
    text, size = ctypes.c_char_p, ctypes.c_size_t
    where = (TOPIC, text(topic.encode()), PARTITION, ctypes.c_int32(0))
    what = (VALUE, text(value), size(len(value)), COPY, COPIED)
    header = (HEADER, text(name), text(b"x"), ctypes.c_ssize_t(1))
    assert lib.rd_kafka_producev(client, *where, *what, *header, END) == 0
    assert lib.rd_kafka_flush(client, WAIT_MS) == 0
    lib.rd_kafka_destroy(client)


def _library() -> ctypes.CDLL:
    """librdkafka as the client of Python has it."""
    [found] = Path(cimpl.__file__).parents[1].glob("confluent_kafka.libs/librdkafka-*")
    return ctypes.CDLL(str(found))

"""A process that sends rows to a topic and bounds beside it, until it is killed."""

from typing import Any

import spark_rowtime as rt

START = 1_767_571_200_000_000
MINUTE = 60_000_000


def pour(pipe: Any, bootstrap: str, topic: str, path: str, name: str, generation: int) -> None:
    """Sends ten rows a minute in any order, and then the minute's end as a bound.

    Says ("row", value) once the broker has a row, and ("bound", floor) once the stream has a bound. A row's value is
    its time, its producer, the process, and its number.
    """
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2})
    with rt.KafkaBounds(producer, topic, rt.openSink(path, producer=name, lease=None), timeout="240 s") as orders:
        bound = orders.getRowtimeBound()
        minute = 0 if bound is None else (bound.floor - START) // MINUTE
        for number in range(1 << 30):
            time = START + (minute + number // 10) * MINUTE + number * 7919 % MINUTE
            value = f"{time} {name} {generation} {number}"
            orders.produce(
                value,
                rowtime=rt.RowtimeBound.fromFloor(time).time,
                partition=number * 31 % 3 if name == "a" else 0,
                on_delivery=lambda error, message: error or pipe.send(("row", message.value().decode())),
            )
            if number % 10 == 9:
                orders.sendRowtimeBound(rt.RowtimeBound.fromFloor(START + (minute + number // 10 + 1) * MINUTE))
                if number % 30 == 29:
                    orders.flush()
                    pipe.send(("bound", START + (minute + number // 10 + 1) * MINUTE))

"""The topics of Spark's Kafka source, as a KafkaWatch beside it is told of them: servers, topics, times, security.

Spark's source has the options of Java's client, the watch those of librdkafka. Security is translated where that can
be done; an option that cannot be is refused, never left out.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_rowtime.errors import InvalidOptionError
from spark_rowtime.kafka.client import PREFIX
from spark_rowtime.kafka.decoding import MESSAGE_TIME
from spark_rowtime.kafka.topic_adapter import APPEND_TIME, ROWS

_SECURITY = ("security.", "sasl.", "ssl.")
_OTHERWISE = {
    "assign": "For some partitions let rowtime watch run beside, and leave watch out. ",
    "subscribepattern": "The query would read a topic that comes later before the watch has seen it. ",
}
"""Why a source that reads otherwise has no watch."""
_SAME = ("security.protocol", "sasl.mechanism", "ssl.key.password")
_LOGIN = re.compile(
    r"\s*org\.apache\.kafka\.common\.security\.(?:plain\.Plain|scram\.Scram)LoginModule\s+required\b(.*);\s*"
)
_QUOTED = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
_STORES = ("ssl.truststore.", "ssl.keystore.")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)


def watch_arguments(given: Mapping[str, str], topic: Mapping[str, Any]) -> dict[str, str]:
    """Returns the arguments of the KafkaWatch beside a source of Spark, as texts.

    Args:
        given: What the user has said: they take precedence.
        topic: What the extension knows: ``options`` of the source; ``column``, the time column; ``field``, which field
            of a message that is, and ``unit``, the unit of the number there; ``zone``, in which texts are read.

    Raises:
        InvalidOptionError: The source reads something else than named topics; it is not known which field has the time;
            an option of the source has no counterpart.
    """
    source = {name.lower(): text for name, text in topic["options"].items()}
    secured = any(name.removeprefix(PREFIX).startswith(_SECURITY) for name in given if name.startswith(PREFIX))
    security = {} if secured else _security(source)
    times = {"tz": topic["zone"], **_time(given, topic)}
    return {**_topics(source), **times, **security, **given}


def _topics(source: Mapping[str, str]) -> dict[str, str]:
    if "subscribe" not in source:
        how = next((name for name in ("assign", "subscribepattern") if name in source), "no option subscribe")
        raise InvalidOptionError(
            f"The Kafka source that is punctuated has {how}, and its watch follows topics by their names, with all "
            f"partitions. {_OTHERWISE.get(how, '')}Write option('subscribe', 'TOPIC'), several with commas.",
            option=how,
        )
    begins = [name for name in source if name.startswith("starting") and name != "startingoffsets"]
    latest = source.get("startingoffsets", "latest").lower() == "latest" and not begins
    return {
        "servers": source[f"{PREFIX}bootstrap.servers"],
        "topics": source["subscribe"],
        "start": "latest" if latest else "earliest",
        "lost": "skip" if source.get("failondataloss", "true").lower() == "false" else "fail",
    }


def _time(given: Mapping[str, str], topic: Mapping[str, Any]) -> dict[str, str]:
    """Which field has the time, for bounds by rows. With those by the time of appending it is not guessed, either."""
    field, column = topic["field"], topic["column"]
    if "rowtime" in given or given.get("bounds", ROWS) not in (ROWS, APPEND_TIME):
        return {}
    if field is None and given.get("bounds") == APPEND_TIME:
        return {"rowtime": column}
    if field is None:
        raise InvalidOptionError(
            f"It is not known which field of the messages has the time {column!r}. That is known of fields of "
            "from_json(CAST(value AS STRING), ...) without options, also of a text, a whole number, a DOUBLE or a "
            "DECIMAL with six digits or more behind the point that is cast to TIMESTAMP, and of the column timestamp. "
            "Say it: watch={'rowtime': 'FIELD', ...}, with 'timeUnit' if it is "
            f"a number; {MESSAGE_TIME!r} is the time of the messages.",
            option="rowtime",
            column=column,
        )
    return {"rowtime": field, **({} if topic["unit"] is None else {"timeUnit": topic["unit"]})}


def _security(source: Mapping[str, str]) -> dict[str, str]:
    """The options of security of Java's client under the names of librdkafka's."""
    java = {name.removeprefix(PREFIX): text for name, text in source.items() if name.startswith(PREFIX)}
    java = {name: text for name, text in java.items() if name.startswith(_SECURITY)}
    found = {name: java.pop(name) for name in _SAME if name in java}
    if "ssl.endpoint.identification.algorithm" in java:
        found["ssl.endpoint.identification.algorithm"] = java.pop("ssl.endpoint.identification.algorithm") or "none"
    if "sasl.jaas.config" in java and (login := _LOGIN.fullmatch(java["sasl.jaas.config"])):
        del java["sasl.jaas.config"]
        found |= {f"sasl.{name}": _unquoted(one or other) for name, one, other in _QUOTED.findall(login[1])}
    found |= _stores(java)
    if java:
        raise _untranslated(min(java))
    return {PREFIX + name: text for name, text in found.items()}


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _stores(java: dict[str, str]) -> dict[str, str]:
    """Certificates and keys in PEM. Takes the options out of ``java``; those of other kinds of stores stay there."""
    found: dict[str, str] = {}
    for store in _STORES:
        if java.get(f"{store}type", "").upper() == "PEM":
            del java[f"{store}type"]
            text = _in_file(java.pop(f"{store}location")) if f"{store}location" in java else ""
            chain = java.pop(f"{store}certificates", "") + java.pop(f"{store}certificate.chain", "")
            found |= _pem(text + chain + java.pop(f"{store}key", ""), "ssl.ca.pem" if "trust" in store else None)
    return found


def _pem(text: str, authorities: str | None) -> dict[str, str]:
    certificates, keys = "\n".join(_CERTIFICATE.findall(text)), "\n".join(_KEY.findall(text))
    if authorities is not None:
        return {authorities: certificates}
    return {"ssl.certificate.pem": certificates, "ssl.key.pem": keys}


def _in_file(path: str) -> str:
    """The PEM file that Spark's source reads, too."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOptionError(f"The PEM file {path} of the Kafka source cannot be read: {error}") from None


def _untranslated(name: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The Kafka source that is punctuated has the option {PREFIX}{name}, of which the client of the watch has no "
        "counterpart: PLAIN and SCRAM in sasl.jaas.config, and stores of the type PEM, are translated. Give the watch "
        "all options of security itself, under the names of librdkafka: watch={'kafka.security.protocol': ..., "
        "'kafka.ssl.ca.pem': ...}. Or let rowtime watch run beside, and leave watch out.",
        option=f"{PREFIX}{name}",
    )

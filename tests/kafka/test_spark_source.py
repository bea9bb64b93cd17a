"""What a watch takes from Spark's Kafka source: options of Java's client become those of librdkafka."""

from pathlib import Path
from typing import Any

import pytest

import spark_rowtime as rt
from spark_rowtime.kafka.from_sql import require_allowed
from spark_rowtime.kafka.spark_source import watch_arguments

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b;c" x="1";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required password='p' username='me';"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"
KEY = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII\n-----END ENCRYPTED PRIVATE KEY-----"


def told(given: dict[str, str] | None = None, field: str | None = "ts", unit: str | None = None, **options: str) -> Any:
    source = {"kafka.bootstrap.servers": "b:9092", "subscribe": "orders", **options}
    topic = {"options": source, "column": "ts", "field": field, "unit": unit, "zone": "UTC"}
    found = watch_arguments(given or {}, topic)
    require_allowed(found, ())
    return found


def client(**options: str) -> dict[str, str]:
    named = {f"kafka.{name.replace('_', '.')}": text for name, text in options.items()}
    return {name.removeprefix("kafka."): text for name, text in told(**named).items() if name.startswith("kafka.")}


def test_topics_and_where_they_begin() -> None:
    plain = {"servers": "b:9092", "topics": "orders", "tz": "UTC", "rowtime": "ts", "lost": "fail"}
    assert told() == {**plain, "start": "latest"}
    assert told(StartingOffsets="earliest", failOnDataLoss="False") == {**plain, "start": "earliest", "lost": "skip"}
    assert told(startingTimestamp="1")["start"] == "earliest"
    assert told({"start": "earliest"})["start"] == "earliest"
    for other in ("assign", "subscribePattern"):
        with pytest.raises(rt.InvalidOptionError, match=f"has {other.lower()}, and its watch follows"):
            watch_arguments({}, {"options": {other: "x"}, "column": "ts", "field": "ts", "unit": None, "zone": "UTC"})


def test_the_time() -> None:
    assert told(field="order.at", unit="ms")["timeUnit"] == "ms"
    assert told({"rowtime": "at"}, field=None)["rowtime"] == "at"
    assert "rowtime" not in told({"bounds": "resolved"}, field=None)
    assert told({"bounds": "append-time"}, field=None)["rowtime"] == "ts", "it is not the time of the messages"
    with pytest.raises(rt.InvalidOptionError, match="It is not known which field of the messages has the time 'ts'"):
        told(field=None)


def test_security_is_translated(tmp_path: Path) -> None:
    login = {"sasl.username": "me", "sasl.password": 'a"b;c'}
    said = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_jaas_config": PLAIN}
    assert client(**said) == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **login}
    assert client(sasl_jaas_config=SCRAM) == {"sasl.username": "me", "sasl.password": "p"}
    assert client(ssl_endpoint_identification_algorithm="") == {"ssl.endpoint.identification.algorithm": "none"}
    assert client(max_poll_records="10", client_id="x") == {}, "they are no security"
    stores = {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": CERTIFICATE, "ssl_keystore_type": "pem"}
    (tmp_path / "both.pem").write_text(f"{KEY}\nin between\n{CERTIFICATE}\n")
    found = client(**stores, ssl_keystore_location=str(tmp_path / "both.pem"), ssl_key_password="secret")
    pem = {"ssl.ca.pem": CERTIFICATE, "ssl.certificate.pem": CERTIFICATE, "ssl.key.pem": KEY}
    assert found == {**pem, "ssl.key.password": "secret"}


@pytest.mark.parametrize(
    "options",
    [
        {"ssl_truststore_location": "/x.jks", "ssl_truststore_password": "secret"},
        {"ssl_keystore_location": "/x.p12", "ssl_keystore_type": "PKCS12"},
        {"sasl_jaas_config": "com.sun.security.auth.module.Krb5LoginModule required secret='secret';"},
        {"sasl_mechanism": "OAUTHBEARER", "sasl_login_callback_handler_class": "secret"},
        {"security_providers": "secret"},
    ],
)
def test_what_has_no_counterpart_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(rt.InvalidOptionError, match="has no counterpart") as error:
        client(**options)
    assert "secret" not in str(error.value)
    named = {f"kafka.{name.replace('_', '.')}": text for name, text in options.items()}
    own = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.username": "me"}
    assert told(own, **named).items() >= own.items(), "the watch has security of its own"


def test_no_variable_of_the_environment_is_filled_in() -> None:
    with pytest.raises(rt.InvalidOptionError, match="add 'env:HOME'"):
        client(security_protocol="{env:HOME}")

"""Records: what reads the record of a message, for each format that a feed knows."""

from collections.abc import Mapping
from typing import Any

from spark_rowtime.kafka.avro import HEADER, AvroRecords, schema_id
from spark_rowtime.kafka.decoding import Decoder, json_of, json_record
from spark_rowtime.kafka.malformed import MalformedError, require_decodable
from spark_rowtime.kafka.protobuf import ProtobufRecords
from spark_rowtime.kafka.registry import require_registry

FORMATS = ("json", "avro", "json-schema", "protobuf")
"""Decoders that are formats, not functions."""


def records_of(decoder: str, registry: Mapping[str, str]) -> Decoder:
    """What reads records of a format. ``registry``: the options of the schema registry's client, with ``url``."""
    if decoder == "json":
        return json_record
    if decoder == "json-schema":
        return json_schema_record
    require_registry(registry, "decoder", decoder)
    return AvroRecords(registry) if decoder == "avro" else ProtobufRecords(registry)


def json_schema_record(message: Any) -> Any:
    """The JSON value of a message in Confluent's wire format: behind a zero and the id of its schema.

    Its producer has checked it by the schema, which is not needed to read it.
    """
    value = message.value()
    if schema_id(value) is None:
        raise MalformedError("it is not JSON in Confluent's wire format: it does not begin with the id of a schema")
    require_decodable(value)
    return json_of(value[HEADER.size :])

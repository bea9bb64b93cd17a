"""Kafka: topics into a stream, bounds beside a topic, a stream into a topic."""

"""Topics of Kafka as sinks. See ``openTopicSink``."""

"""Apache Kafka: topics into streams, bounds beside topics, streams into topics. Needs the pip extra ``kafka``."""

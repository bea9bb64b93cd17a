"""Sinks into tables: Delta Lake, Apache Iceberg, and folders of Parquet files. See ``openTableSink``."""

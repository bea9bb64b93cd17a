"""Drains into Delta, Iceberg and Parquet, read back by others."""

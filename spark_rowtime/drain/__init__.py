"""Streams into what keeps rows, bound and position together: tables, and topics of Kafka."""

"""Spark's own Kafka source and sink beside Ferry, in situations that every copy meets."""

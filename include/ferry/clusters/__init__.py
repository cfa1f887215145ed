"""Adapters to Kafka: the raw data path, administration, readers of internal topics."""

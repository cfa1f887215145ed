"""Keeping what surrounds the records in step: topics, their configs and limits, Ferry's own topics."""

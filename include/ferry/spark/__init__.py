"""Lanes as tasks of a bounded Spark job."""

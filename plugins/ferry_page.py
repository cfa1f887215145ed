"""The Ferry page, for an Airflow whose plugins folder this is. The installed package registers the same plugin; Airflow loads it once."""

from ferry.airflow.plugin import FerryPagePlugin

__all__ = ["FerryPagePlugin"]

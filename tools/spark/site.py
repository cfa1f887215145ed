"""Spark's own settings of a site, as its administrator would write them: a `spark-defaults.conf`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def site(directory: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Write them below `directory`; returns the environment that makes Spark read them, on 127.0.0.1."""
    place = directory / "spark-conf"
    place.mkdir(parents=True, exist_ok=True)
    (place / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return {"SPARK_CONF_DIR": str(place), "SPARK_LOCAL_IP": "127.0.0.1"}

"""The demo's Airflow, with other settings: services of its own in a directory of a test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from demo.airflow_services import DemoAirflow


class OwnAirflow(DemoAirflow):
    """`settings`: environment variables that all its processes have."""

    def __init__(self, home: Path, config: Path, settings: Mapping[str, str]) -> None:
        super().__init__(home, config)
        self._settings = settings

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **self._settings}

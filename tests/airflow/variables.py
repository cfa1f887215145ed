"""Airflow's Variables, in memory."""

from __future__ import annotations

import json
from typing import Any


class Variables:
    def __init__(self, *, broken: bool = False) -> None:
        self.values: dict[str, str] = {}
        self._broken = broken

    def get(self, key: str, default: Any, *, deserialize_json: bool) -> Any:
        assert deserialize_json
        if self._broken:
            raise RuntimeError("no answer")
        return json.loads(self.values[key]) if key in self.values else default

    def set(self, key: str, value: Any, *, serialize_json: bool) -> None:
        assert serialize_json
        if self._broken:
            raise RuntimeError("no answer")
        self.values[key] = json.dumps(value)

    def delete(self, key: str) -> None:
        del self.values[key]

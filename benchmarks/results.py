"""What a run of the benchmark found: samples per shape and copier, medians and ratios, targets, JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import Sample
from benchmarks.shapes import Shape

VERSION = 1
FERRY, FERRY_BESIDE, FERRY_FOLLOWS = "ferry", "ferry-beside", "ferry-follows"
MM2_TUNED, MM2_DEFAULTS = "mm2-tuned", "mm2-defaults"


@dataclass
class ShapeResult:
    """All rounds of one shape: samples by copier, and the produce-only limits (records/s), two per round."""

    shape: Shape
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    limits: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def add(self, copier: str, sample: Sample) -> None:
        """Take in one round of a copier."""
        self.samples.setdefault(copier, []).append(sample)

    def median(self, copier: str, field_name: str) -> float | None:
        """Of a number of Sample over the rounds; None when the copier did not run."""
        values = [getattr(sample, field_name) for sample in self.samples.get(copier, ())]
        return statistics.median(values) if values and None not in values else None

    def cpu_per_gigabyte(self, copier: str) -> float | None:
        """Median CPU seconds per 10^9 bytes of record values."""
        seconds = self.median(copier, "cpu_seconds")
        return None if seconds is None else seconds / self.shape.gigabytes

    def times_faster(self, over: str = MM2_TUNED) -> float | None:
        """Ferry's median records/s over another's."""
        return ratio(self.median(FERRY, "records_per_second"), self.median(over, "records_per_second"))

    def cpu_share(self, over: str = MM2_TUNED) -> float | None:
        """Ferry's median CPU seconds over another's."""
        return ratio(self.median(FERRY, "cpu_seconds"), self.median(over, "cpu_seconds"))

    def wall_share(self, over: str = MM2_TUNED) -> float | None:
        """Ferry's median time from start to caught up over another's."""
        return ratio(self.median(FERRY, "caught_up_seconds"), self.median(over, "caught_up_seconds"))

    def limit_share(self, copier: str = FERRY) -> float | None:
        """A copier's median records/s over the median produce-only limit."""
        return ratio(self.median(copier, "records_per_second"), statistics.median(self.limits) if self.limits else None)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "shape": asdict(self.shape),
            "records": self.shape.records,
            "gigabytes": self.shape.gigabytes,
            "samples": {copier: [asdict(sample) for sample in samples] for copier, samples in self.samples.items()},
            "produce_limits": self.limits,
            "failures": self.failures,
            "ferry_over_mm2": {
                over: {
                    "records_per_second": self.times_faster(over),
                    "cpu_seconds": self.cpu_share(over),
                    "caught_up_seconds": self.wall_share(over),
                }
                for over in (MM2_TUNED, MM2_DEFAULTS)
                if over in self.samples
            },
            "share_of_produce_limit": {copier: self.limit_share(copier) for copier in self.samples},
        }


def ratio(value: float | None, over: float | None) -> float | None:
    """None when either is missing or there is nothing to divide by."""
    return None if value is None or not over else value / over


def document(results: Iterable[ShapeResult], options: dict[str, Any], load: float) -> dict[str, Any]:
    """The whole run as JSON, with the machine it ran on and its load (of one minute) before the run."""
    memory = round(psutil.virtual_memory().total / 2**30)
    machine = {"cores": os.cpu_count(), "memory_gib": memory, "python": platform.python_version(), "load_before": round(load, 1)}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"version": VERSION, "at": now, "machine": machine, "options": options, "shapes": [result.document() for result in results]}


def write(content: dict[str, Any], path: Path) -> None:
    """As an indented JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")

"""What a soak tells while it goes on, and what it counts."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Log:
    """Every event with its time and the seed; counts of what happened; whatever is wrong. Thread-safe."""

    seed: int
    lines: list[str] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    exits: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    problems: list[str] = field(default_factory=list)
    checks: dict[str, str] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        """One line."""
        with self._lock:
            line = f"{time.strftime('%H:%M:%S')} seed {self.seed} +{time.monotonic() - self._began:6.1f} s  {text}"
            self.lines.append(line)
            print(line, flush=True)  # noqa: T201 - the report

    def event(self, kind: str, text: str) -> None:
        """Something that the soak did to source or target as their users would."""
        with self._lock:
            self.events[kind] += 1
        self.say(f"{kind}: {text}")

    def fault(self, kind: str, text: str = "") -> None:
        """Something that the soak broke."""
        with self._lock:
            self.faults[kind] += 1
        self.say(f"FAULT {kind}{': ' if text else ''}{text}")

    def problem(self, text: str) -> None:
        """Something that should not be."""
        with self._lock:
            self.problems.append(text)
        self.say(f"PROBLEM {text}")

    def verdict(self, check: str, text: str, problems: list[str]) -> None:
        """The outcome of one check of the end."""
        self.checks[check] = f"{text}; {len(problems)} problems" if problems else text
        self.say(f"{check}: {self.checks[check]}")
        for problem in problems:
            self.problem(f"{check}: {problem}")

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

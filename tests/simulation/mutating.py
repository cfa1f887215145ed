"""Loads Ferry without one of its rules, and plays seeds until one of them finds it.

A mutant is text of a module that is replaced when the module is imported, so it needs a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutant(NamedTuple):
    """`rule`: the one that is missing. `edits`: old and new text of the module."""

    name: str
    rule: str
    module: str
    edits: tuple[tuple[str, str], ...]

    @property
    def path(self) -> Path:
        return ROOT / "include" / f"{self.module.replace('.', '/')}.py"


class _Mutated(SourceFileLoader):
    """Compiles a module with the text of a mutant."""

    def __init__(self, mutant: Mutant, path: str) -> None:
        super().__init__(mutant.module, path)
        self._mutant = mutant

    def get_code(self, _: str) -> CodeType:
        return compile(text_of(self._mutant), str(self._mutant.path), "exec")


def text_of(mutant: Mutant) -> str:
    """The module's text without the rule. ValueError if the module has not the old text exactly once."""
    text = mutant.path.read_text(encoding="utf-8")
    for old, new in mutant.edits:
        if text.count(old) != 1:
            raise ValueError(f"{mutant.name}: {mutant.path.name} has this {text.count(old)} times: {old}")
        text = text.replace(old, new)
    return text


class _Finder(MetaPathFinder):
    """Finds one module in the form of a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._mutant.module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Mutated(self._mutant, spec.origin)
        return spec


def first_found(mutant: Mutant, first: int, seeds: int) -> tuple[int, str] | None:
    """How many seeds it took, and what does not hold then; None: none of them found it. Call it in a new process."""
    assert mutant.module not in sys.modules
    sys.meta_path.insert(0, _Finder(mutant))
    from tests.simulation.playing import play  # noqa: PLC0415 - only now: it loads the mutant
    from tests.simulation.scenario import drawn  # noqa: PLC0415 - likewise

    for seed in range(first, first + seeds):
        problems = play(drawn(seed)).problems
        if problems:
            return seed - first + 1, problems[0]
    return None

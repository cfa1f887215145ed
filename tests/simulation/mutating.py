"""Loads Ferry without one of its rules, and plays seeds until one of them finds it.

A mutant is text of a module that is replaced when the module is imported, so it needs a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import chain
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Mutant(NamedTuple):
    """`rule`: the one that is missing. `edits`: old and new text of the module. `beside`: edits of other modules, by name, for rules that
    hold in each other's place. `harm`: what must be seen, if another rule would stop the run in time; empty: anything."""

    name: str
    rule: str
    module: str
    edits: tuple[tuple[str, str], ...]
    beside: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    harm: str = ""

    @property
    def modules(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """The edits of each module."""
        return {self.module: self.edits, **dict(self.beside)}


def mutant_of(name: str, rule: str, module: str, *edits: tuple[str, str], beside: Mutant | None = None, harm: str = "") -> Mutant:
    """`beside`: a mutant whose rule is missing too. `harm`: as of Mutant."""
    return Mutant(name, rule, f"ferry.{module}", edits, () if beside is None else ((beside.module, beside.edits),), harm)


class _Mutated(SourceFileLoader):
    """Compiles a module with the text of a mutant."""

    def __init__(self, mutant: Mutant, module: str, path: str) -> None:
        super().__init__(module, path)
        self._mutant = mutant

    def get_code(self, _: str) -> CodeType:
        return compile(text_of(self._mutant, self.name), self.path, "exec")


def text_of(mutant: Mutant, module: str) -> str:
    """A module's text without the rule. ValueError if the module has not the old text exactly once."""
    path = ROOT / "include" / f"{module.replace('.', '/')}.py"
    text = path.read_text(encoding="utf-8")
    for old, new in mutant.modules[module]:
        if text.count(old) != 1:
            raise ValueError(f"{mutant.name}: {path.name} has this {text.count(old)} times: {old}")
        text = text.replace(old, new)
    return text


class _Finder(MetaPathFinder):
    """Finds the modules of a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._mutant.modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            spec.loader = _Mutated(self._mutant, name, spec.origin)
        return spec


def first_found(mutant: Mutant, first: int, seeds: int) -> tuple[int, str] | None:
    """How many seeds it took (0: a scene did), and what does not hold then; None: nothing found it. Call it in a new process."""
    assert sys.modules.keys().isdisjoint(mutant.modules)
    sys.meta_path.insert(0, _Finder(mutant))
    from tests.simulation.playing import play  # noqa: PLC0415 - only now: it loads the mutant
    from tests.simulation.scenes import SCENES  # noqa: PLC0415 - likewise
    from tests.simulation.themes import drawn  # noqa: PLC0415 - likewise

    scenes = ((0, scene) for scene in SCENES.get(mutant.name, ()))
    for number, scenario in chain(scenes, ((seed - first + 1, drawn(seed)) for seed in range(first, first + seeds))):
        problems = [problem for problem in play(scenario).problems if mutant.harm in problem]
        if problems:
            return number, problems[0]
    return None

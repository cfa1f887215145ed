"""MirrorMaker 2 and Ferry side by side: the same source, the same file, a target each. What they leave must be equal.

Twice: as it was set out, and after changes at the source and on the remote side. Differences are allowed only where they are documented.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from combinations import COMBINATIONS, Combination
from stage import USERS, Stage, mark
from tools.kafka import SandboxCluster
from tools.kafka.mirror_maker import MirrorMaker

pytestmark = [pytest.mark.brokers]

QUICK = tuple(chosen for chosen in COMBINATIONS if chosen.quick)
# One process runs all flows.
JAVA_OPTIONS = ("-Xmx2g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
Found = dict[str, dict[str, list[str]]]


def side_by_side(directory: Path, combinations: Sequence[Combination]) -> Found:
    """By phase and mark, what Ferry could not do, and where both sides differ."""
    with ExitStack() as running, ThreadPoolExecutor(3) as pool:
        names = ("source", "mm2", "ferry")
        starting = [pool.submit(SandboxCluster.start, directory / name, name, users=USERS, authorizer=True) for name in names]
        source, mm2_target, ferry_target = (running.enter_context(future.result()) for future in starting)
        chosen = {mark(number): one for number, one in enumerate(combinations)}
        stage = Stage(source, mm2_target, ferry_target, directory, chosen)
        stage.set_out()
        with MirrorMaker.start(stage.mm2_properties(), directory / "mm2.properties", java_options=JAVA_OPTIONS):
            found = {"failed at first": stage.run_ferry(), "set out": stage.compare()}
            stage.change()
            return {**found, "failed after changes": stage.run_ferry(), "changed": stage.compare()}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Side by side under a handful of combinations."""
    return side_by_side(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Side by side under all combinations."""
    return side_by_side(tmp_path_factory.mktemp("every"), COMBINATIONS)


@pytest.mark.parametrize("number", range(len(QUICK)), ids=[chosen.name for chosen in QUICK])
def test_a_handful_of_combinations(quick: Found, number: int) -> None:
    assert {phase: lines for phase, marks in quick.items() if (lines := marks[mark(number)])} == {}


@pytest.mark.parity
@pytest.mark.parametrize("number", range(len(COMBINATIONS)), ids=[chosen.name for chosen in COMBINATIONS])
def test_every_combination(every: Found, number: int) -> None:
    found = {phase: marks[mark(number)] for phase, marks in every.items() if marks[mark(number)]}
    assert bool(found) == bool(COMBINATIONS[number].different), found

"""Rings and pairs that would send records round are refused when the file is loaded; what cannot is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferry.config import load_config
from ferry.errors import ConfigError

pytestmark = pytest.mark.unit

Load = Callable[..., str]
IDENTITY = "replication.policy.class = IdentityReplicationPolicy"
RING = ("A->B", "B->C", "C->A")
MESH = ("A->B", "B->A", "B->C", "C->B", "C->A", "A->C")
CHAIN = ("A->B", "B->A", "B->C", "C->B", "C->D", "D->C", "B->E", "E->B")


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a file with these flows and lines; the problem that it is refused with, or nothing."""

    def refusal(flows: tuple[str, ...], *lines: str) -> str:
        aliases = sorted({alias for flow in flows for alias in flow.split("->")})
        text = [f"clusters = {', '.join(aliases)}", *(f"{alias}.bootstrap.servers = {alias}:9092" for alias in aliases)]
        text += [*(f"{flow}.enabled = true" for flow in flows), *lines]
        path = tmp_path / "mm2.properties"
        path.write_text("\n".join(text) + "\n")
        try:
            load_config(path)
        except ConfigError as problem:
            return str(problem)
        return ""

    return refusal


@pytest.mark.parametrize("flows", [RING, MESH])
def test_a_ring_under_one_name_is_refused(flows: tuple[str, ...], load: Load) -> None:
    problem = load(flows, IDENTITY)
    assert all(name in problem for name in ("A->B", "B->C", "C->A"))
    assert f":{len(set(''.join(flows)) - set('->')) + len(flows) + 2}: " in problem, "the line of replication.policy.class"
    assert "topics.exclude" in problem


def test_a_ring_is_reported_once(load: Load) -> None:
    assert load(RING, IDENTITY).count("the ring") == 1


@pytest.mark.parametrize(
    ("flows", "lines"),
    [
        (RING, ()),  # names that tell the source
        (RING, (IDENTITY, "C->A.replication.policy.class = DefaultReplicationPolicy")),
        (("A->B", "B->C", "A->C"), (IDENTITY,)),  # no way back
        (("A->B", "B->A"), (IDENTITY,)),
        (CHAIN, (IDENTITY,)),  # pairs only
        (RING, (IDENTITY, "A->B.topics = x, y", "B->C.topics = y, z", "C->A.topics = z, x")),
        (RING, (IDENTITY, "A->B.topics = x.*", "B->C.topics = y", "C->A.topics = .*")),
        (RING, (IDENTITY, "topics = x", "B->C.topics.exclude = x")),
        (RING, (IDENTITY, "topics = heartbeats")),  # renamed under every policy
    ],
)
def test_flows_without_a_ring_are_allowed(flows: tuple[str, ...], lines: tuple[str, ...], load: Load) -> None:
    assert not load(flows, *lines)


@pytest.mark.parametrize(
    "lines",
    [
        ("topics = x",),
        ("A->B.topics = x, y", "B->C.topics = .*", "C->A.topics = x.*"),
        ("topics = a\\\\.b",),  # one backslash in the value
        ("topics = orders.eu",),
        ("A->B.topics = x", "B->C.topics = x, x.*", "C->A.topics = [xy]"),
    ],
)
def test_the_ring_is_found_topic_by_topic(lines: tuple[str, ...], load: Load) -> None:
    assert "the ring" in load(RING, IDENTITY, *lines)


@pytest.mark.parametrize("wrong", ["A->B", "B->A"])
def test_both_directions_copy_exactly_once(wrong: str, load: Load) -> None:
    problem = load(("A->B", "B->A"), IDENTITY, f"{wrong}.transaction.producer = false")
    assert f"{wrong}.transaction.producer: is false" in problem
    assert ":7: " in problem
    assert not load(("A->B",), IDENTITY, f"{wrong}.transaction.producer = false")
    assert not load(("A->B", "B->A"), f"{wrong}.transaction.producer = false")
    assert not load(("A->B", "B->A"), IDENTITY, f"{wrong}.transaction.producer = false", "A->B.topics = x", "B->A.topics = y")


def test_an_at_least_once_branch_of_a_pair_is_allowed(load: Load) -> None:
    assert not load(("A->B", "B->A", "B->C"), IDENTITY, "B->C.transaction.producer = false")


def test_one_cluster_under_two_aliases_is_refused(load: Load) -> None:
    assert "has a server of cluster A" in load(("A->B", "B->A"), IDENTITY, "B.bootstrap.servers = A:9092")

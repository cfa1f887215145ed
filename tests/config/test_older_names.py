"""Older names of properties are read as the names that replaced them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.config import FerryConfig

pytestmark = pytest.mark.unit

Load = Callable[..., FerryConfig]


def chosen(config: FerryConfig) -> tuple[object, ...]:
    flow = config.flow("A->B")
    return flow.topics_exclude, flow.config_properties_exclude, flow.mirroring


@pytest.mark.parametrize(
    ("line", "read_as"),
    [
        ("topics.blacklist = secret.*", "topics.exclude"),
        ("A->B.topics.blacklist = secret.*", "A->B.topics.exclude"),
        ("groups.blacklist = secret.*", "groups.exclude"),
        ("A->B.config.properties.blacklist = secret.*", "A->B.config.properties.exclude"),
        ("sync.topic.configs = false", "sync.topic.configs.enabled"),
        ("A->B.sync.topic.acls = false", "A->B.sync.topic.acls.enabled"),
        ("A->B.emit.heartbeats = false", "A->B.emit.heartbeats.enabled"),
        ("emit.checkpoints = false", "emit.checkpoints.enabled"),
    ],
)
def test_an_older_name_does_what_its_successor_does(load: Load, line: str, read_as: str) -> None:
    key, _, value = line.partition(" = ")
    config = load(line + "\n")
    assert chosen(config) == chosen(load(f"{read_as} = {value}\n")) != chosen(load())
    (warning,) = config.warnings
    assert f":5: {key}: is read as {read_as}: MM2 " in warning


def test_the_new_name_wins(load: Load) -> None:
    config = load("topics.blacklist = old\ntopics.exclude = new\n")
    assert config.flow("A->B").topics_exclude == ("new",)
    (warning,) = config.warnings
    assert "5: topics.blacklist: has no effect: topics.exclude is set too" in warning


def test_the_new_name_wins_at_any_level(load: Load) -> None:
    """Kafka's ConfigUtils translates after MM2 has put the levels together."""
    config = load("topics.exclude = new\nA->B.topics.blacklist = old\n")
    assert config.flow("A->B").topics_exclude == ("new",)
    assert "6: A->B.topics.blacklist: has no effect: topics.exclude is set too" in config.warnings[0]


def test_an_older_name_where_a_flow_s_property_has_no_effect(load: Load) -> None:
    config = load("A.topics.blacklist = x\n")
    assert config.flow("A->B").topics_exclude == load().flow("A->B").topics_exclude
    (warning,) = config.warnings
    assert "5: A.topics.blacklist: has no effect: it belongs to a flow" in warning


def test_the_first_form_of_clusters(load: Load) -> None:
    """The sample of KIP-382's "MirrorMaker Clusters"."""
    sample = """\
clusters = primary, backup
cluster.primary.broker.list = localhost:9091
cluster.backup.broker.list = localhost:9092
cluster.backup.security.protocol = SSL
primary->backup.enabled = true
primary->backup.emit.heartbeats = false
"""
    flow = load(sample, whole=True).flow("primary->backup")
    assert (flow.source.bootstrap, flow.target.bootstrap) == ("localhost:9091", "localhost:9092")
    assert not flow.mirroring.emit_heartbeats_enabled
    assert len(load(sample, whole=True).warnings) == 4


def test_the_value_of_an_older_name_is_checked_under_the_key_that_was_written(load: Load) -> None:
    config = load("A->B.groups.blacklist = a, a\n")
    assert config.flow("A->B").mirroring.groups_exclude == ("a",)
    assert any("5: A->B.groups.blacklist: holds an element twice" in warning for warning in config.warnings)

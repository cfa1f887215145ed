"""Which configs a remote topic gets: MirrorMaker 2's rules, held against a second reading of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.clusters.admin.broker_defaults import BrokerDefaults
from ferry.clusters.admin.describe import ConfigOrigin, ConfigValue
from ferry.policy.filters import DefaultConfigPropertyFilter
from ferry.syncs.config_plan import ConfigRules, creation_config, depends_on_brokers, plan_configs
from ferry.wire.batch import DEFAULT_BATCH_LIMIT

pytestmark = pytest.mark.unit

NAMES = ("cleanup.policy", "compression.type", "retention.ms", "segment.bytes", "min.insync.replicas")
TEXTS = st.sampled_from(("1", "2"))


def value(text: str | None, origin: ConfigOrigin = ConfigOrigin.TOPIC, **flags: bool) -> ConfigValue:
    return ConfigValue(text, origin, **flags)


def rules(*excluded: str, source_defaults: bool = False, target: BrokerDefaults | None = None) -> ConfigRules:
    return ConfigRules(DefaultConfigPropertyFilter(excluded, "source" if source_defaults else "target"), target or BrokerDefaults())


@pytest.mark.parametrize(
    ("entry", "copied"),
    [
        (value("1000"), True),
        (value("1000", ConfigOrigin.BROKER), True),
        (value("1000", ConfigOrigin.ALL_BROKERS), True),
        (value("1000", ConfigOrigin.UNKNOWN), True),
        (value("1000", ConfigOrigin.BROKER_FILE), False),
        (value("1000", ConfigOrigin.DEFAULT), False),
        (value("1000", read_only=True), False),
        (value(None, sensitive=True), False),
    ],
)
def test_a_new_topic_gets_what_differs_from_kafkas_defaults(entry: ConfigValue, copied: bool) -> None:
    config, _ = creation_config({"retention.ms": entry}, rules())
    assert config == ({"retention.ms": "1000"} if copied else {})


def test_a_new_topic_gets_the_sources_defaults_when_the_flow_says_so() -> None:
    source = {"segment.bytes": value("5", ConfigOrigin.DEFAULT), "retention.ms": value("6", ConfigOrigin.BROKER_FILE)}
    assert creation_config(source, rules(source_defaults=True))[0] == {"segment.bytes": "5"}


def test_a_new_topic_does_not_get_excluded_entries_and_they_are_named() -> None:
    assert creation_config({"min.insync.replicas": value("2")}, rules("min.insync.replicas")) == (
        {},
        (("min.insync.replicas", "in the property config.properties.exclude: 2 at the source"),),
    )


def test_a_new_topic_never_replaces_timestamps() -> None:
    config, left = creation_config({"message.timestamp.type": value("LogAppendTime"), "compression.type": value("gzip")}, rules())
    assert config == {"compression.type": "gzip"}
    assert left[0][0] == "message.timestamp.type"
    assert creation_config({"message.timestamp.type": value("CreateTime")}, rules())[0] == {"message.timestamp.type": "CreateTime"}


def test_a_new_topic_keeps_timestamps_where_the_targets_brokers_replace_them() -> None:
    stamping = BrokerDefaults(topics={"message.timestamp.type": "LogAppendTime"})
    excluding = rules("message.timestamp.type", target=stamping)
    assert creation_config({}, excluding)[0] == {"message.timestamp.type": "CreateTime"}


@pytest.mark.parametrize("origin", [ConfigOrigin.BROKER_FILE, ConfigOrigin.DEFAULT])
def test_a_new_topic_accepts_batches_as_large_as_at_the_source(origin: ConfigOrigin) -> None:
    source = {"max.message.bytes": value("5000000", origin)}
    assert creation_config(source, rules())[0] == {"max.message.bytes": "5000000"}
    assert creation_config(source, rules(target=BrokerDefaults(5_000_000)))[0] == {}
    assert creation_config(source, rules("max.message.bytes"))[0] == {}


@pytest.mark.parametrize("there", [True, False])
def test_a_target_without_remote_storage_gets_no_entries_about_it(there: bool) -> None:
    source = {"remote.storage.enable": value("true"), "local.retention.ms": value("1000"), "retention.ms": value("2000")}
    unset = {name: value("", ConfigOrigin.DEFAULT) for name in source}
    wanted = {name: entry.value for name, entry in source.items() if there or name == "retention.ms"}
    choices = rules(target=BrokerDefaults(remote_storage=there))
    config, left = creation_config(source, choices)
    plan = plan_configs(source, unset, choices)
    assert config == {change.name: change.value for change in plan.alterations} == wanted
    assert [name for name, _ in left] == [name for name, _ in plan.left] == sorted(source.keys() - wanted.keys())
    assert all("no remote storage" in reason for _, reason in (*left, *plan.left))
    assert depends_on_brokers(source, {})
    assert not depends_on_brokers(unset, {})


@st.composite
def described(draw: st.DrawFn) -> ConfigValue:
    sensitive = draw(st.booleans()) and draw(st.booleans())
    text = None if sensitive else draw(TEXTS)
    return ConfigValue(text, draw(st.sampled_from(list(ConfigOrigin))), sensitive, draw(st.booleans()) and draw(st.booleans()))


SOURCES = st.fixed_dictionaries({name: described() for name in NAMES})
TARGETS = st.fixed_dictionaries({name: st.builds(ConfigValue, TEXTS, st.sampled_from(list(ConfigOrigin))) for name in NAMES})
CHOICES = st.builds(lambda names, defaults: rules(*names, source_defaults=defaults), st.sets(st.sampled_from(NAMES)), st.booleans())


def mirror_maker(source: dict[str, ConfigValue], target: dict[str, str | None], choices: ConfigRules) -> dict[str, str | None]:
    """What the remote topic sets after MM2 has written all its operations, by name (updateTopicConfigs, read again)."""
    result = dict(target)
    for name, entry in source.items():
        if entry.read_only or entry.sensitive or entry.origin is ConfigOrigin.BROKER_FILE or choices.filter.why_not(name):
            continue
        if entry.origin is ConfigOrigin.DEFAULT and not choices.filter.should_replicate_source_default(""):
            result.pop(name, None)
        else:
            result[name] = entry.value
    return result


def own(target: dict[str, ConfigValue]) -> dict[str, str | None]:
    return {name: entry.value for name, entry in target.items() if entry.origin is ConfigOrigin.TOPIC}


@given(SOURCES, TARGETS, CHOICES)
def test_a_remote_topic_ends_as_under_mirror_maker(
    source: dict[str, ConfigValue], target: dict[str, ConfigValue], choices: ConfigRules
) -> None:
    result = own(target)
    for change in plan_configs(source, target, choices).alterations:
        assert result.get(change.name) != change.value, "written without need"
        if change.value is None:
            del result[change.name]
        else:
            result[change.name] = change.value
    assert result == mirror_maker(source, own(target), choices)


@given(SOURCES, TARGETS, CHOICES)
def test_a_difference_is_written_or_named(source: dict[str, ConfigValue], target: dict[str, ConfigValue], choices: ConfigRules) -> None:
    plan = plan_configs(source, target, choices)
    touched = {change.name for change in plan.alterations}
    named = {name for name, _ in plan.left}
    assert not touched & named
    for name, entry in source.items():
        defaults = entry.origin is ConfigOrigin.DEFAULT and not choices.filter.should_replicate_source_default("")
        if entry.value != target[name].value and not (defaults and target[name].origin is not ConfigOrigin.TOPIC):
            assert name in touched | named


@given(SOURCES, CHOICES)
def test_a_topic_that_was_just_created_needs_nothing(source: dict[str, ConfigValue], choices: ConfigRules) -> None:
    config, _ = creation_config(source, choices)
    target = {name: value(config[name]) if name in config else value("1", ConfigOrigin.DEFAULT) for name in NAMES}
    assert plan_configs(source, target, choices).alterations == ()


def test_a_change_names_both_values_and_the_reason() -> None:
    source = {"a": value("2"), "b": value("2", ConfigOrigin.ALL_BROKERS), "c": value("1", ConfigOrigin.DEFAULT), "d": value("")}
    target = {"a": value("1"), "b": value("1", ConfigOrigin.DEFAULT), "c": value(""), "d": value("1")}
    assert [(change.detail, change.reason) for change in plan_configs(source, target, rules()).alterations] == [
        ("a: 1 -> 2", "set on the topic at the source"),
        ("b: 1 (Kafka's default) -> 2", "set for all brokers at the source"),
        ("c: (empty) -> default", "set on the remote topic only: the source has its default"),
        ("d: 1 -> (empty)", "set on the topic at the source"),
    ]


def test_what_stays_different_is_named() -> None:
    source = {
        "a": value("2"),
        "b": value("2", ConfigOrigin.BROKER_FILE),
        "c": value(None, sensitive=True),
        "d": value("1"),
        "e": value("1"),
    }
    target = {name: value("1") for name in ("a", "b", "c", "e")}
    assert plan_configs(source, target, rules("a", "e")).left == (
        ("a", "in the property config.properties.exclude: 2 at the source, 1 on the remote topic"),
        ("b", "in the file of a source broker only: 2 (in the broker's file) at the source, 1 on the remote topic"),
        ("c", "its value is hidden: (hidden) at the source, 1 on the remote topic"),
        ("d", "the target's brokers do not know it: 1 at the source"),
    )


@pytest.mark.parametrize(
    ("here", "there", "after"),
    [
        (value("LogAppendTime"), value("CreateTime", ConfigOrigin.DEFAULT), None),
        (value("LogAppendTime", ConfigOrigin.ALL_BROKERS), value("CreateTime", ConfigOrigin.DEFAULT), None),
        (value("CreateTime"), value("LogAppendTime"), "CreateTime"),
        (value("CreateTime", ConfigOrigin.DEFAULT), value("CreateTime"), None),
    ],
)
def test_the_sync_never_makes_a_remote_topic_replace_timestamps(here: ConfigValue, there: ConfigValue, after: str | None) -> None:
    """Nothing excludes the name here; the last case would leave it to the target's brokers what holds."""
    plan = plan_configs({"message.timestamp.type": here}, {"message.timestamp.type": there}, rules())
    assert [change.value for change in plan.alterations] == ([] if after is None else [after])
    assert len(plan.left) == (1 if after is None else 0)
    if here.origin is ConfigOrigin.DEFAULT:
        assert plan.left[0][1].endswith("and Ferry cannot know the brokers' default, so the topic keeps CreateTime")


@pytest.mark.parametrize(
    ("limit", "there", "after"),
    [
        (500_000, "1048588", None),  # as the creation set it
        (500_000, "700000", "1048588"),
        (DEFAULT_BATCH_LIMIT, "2000000", "default"),
    ],
)
def test_a_raised_batch_limit_stays_where_it_is_needed(limit: int, there: str, after: str | None) -> None:
    source = {"max.message.bytes": value("1048588", ConfigOrigin.DEFAULT)}
    target = {"max.message.bytes": value(there)}
    assert depends_on_brokers(source, target)
    changes = plan_configs(source, target, rules(target=BrokerDefaults(limit))).alterations
    assert [change.detail.rpartition(" -> ")[2] for change in changes] == ([] if after is None else [after])


def test_a_raised_batch_limit_stays_if_the_brokers_do_not_tell_theirs() -> None:
    source = {"max.message.bytes": value("1048588", ConfigOrigin.DEFAULT)}
    plan = plan_configs(source, {"max.message.bytes": value("2000000")}, rules(target=BrokerDefaults(hidden="denied")))
    assert (plan.alterations, plan.left) == ((), (("max.message.bytes", "denied, so the topic keeps 2000000"),))


def test_what_a_remote_topic_does_not_set_tells_the_brokers_limit() -> None:
    """Then nobody asks the brokers, and the topic still gets what it needs."""
    source = {"max.message.bytes": value("3000000", ConfigOrigin.BROKER_FILE)}
    target = {"max.message.bytes": value("500000", ConfigOrigin.BROKER_FILE)}
    assert not depends_on_brokers(source, target)
    (change,) = plan_configs(source, target, rules()).alterations
    assert (change.value, "the target's default is 500000" in change.reason) == ("3000000", True)

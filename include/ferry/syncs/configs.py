"""The configs of remote topics follow those of their source topics, as config_plan.py says. Only what differs is written.

Topics are described and altered in batches. If the cluster refuses a topic, nothing of that topic has changed; Ferry then tries its entries
one by one, and names only those that the cluster refuses again. A remote topic can do without them, except for those of config_plan.NEEDED.
"""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from ferry.clusters.admin.broker_defaults import BrokerDefaults, broker_defaults
from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.config_changes import ConfigAdmin
from ferry.config import Flow
from ferry.errors import ChangeRefused, FerryError
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.run_report import Skipped
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome
from ferry.syncs.config_plan import NEEDED, Alteration, ConfigPlan, ConfigRules, Entries, depends_on_brokers, plan_configs
from ferry.syncs.sync_scope import GONE, SyncScope, sync_scope

ConfigErrors = Mapping[tuple[str, str], FerryError]


def sync_configs(opened: OpenFlow, *, dry_run: bool = False) -> SyncOutcome:
    """Bring the configs of all remote topics that exist into step. ClusterUnreachable or ConfigError when nothing can be read."""
    flow, target = opened.flow, opened.target.admin
    scope = sync_scope(opened)
    pairs = {remote: topic for topic, remote in scope.pairs if remote in scope.target_topics}
    here, unread_here = opened.source.admin.visible_configs(pairs.values())
    there, unread_there = target.visible_configs(pairs, to_alter=True)
    plans = _plans(flow, target, _readable(pairs, here, there))
    refusals = {} if dry_run else _apply(plans, target)
    changes = [_change(topic, entry) for topic, plan in plans.items() for entry in plan.alterations if (topic, entry.name) not in refusals]
    left = [Skipped(f"topic {topic} {name}", reason) for topic, plan in plans.items() for name, reason in plan.left]
    failed = [SyncFailure.of(f"topic {name}", problem) for name, problem in (unread_here | unread_there).items()]
    for (topic, name), problem in refusals.items():
        if isinstance(problem, ChangeRefused) and name not in NEEDED:  # a remote topic can do without it
            why = f"{problem}; with {name} in config.properties.exclude Ferry does not try it again"
            left.append(Skipped(f"topic {topic} {name}", why))
        else:
            failed.append(SyncFailure.of(f"topic {topic} {name}", problem))
    counts = {"topics": len(plans), "topics_that_differ": sum(bool(plan.alterations) for plan in plans.values())}
    return SyncOutcome(tuple(changes), (*scope.claimed, *_missing(scope), *left), (*scope.failed, *failed), counts=counts)


def _missing(scope: SyncScope) -> Iterator[Skipped]:
    copied = scope.copied
    for topic, remote in scope.pairs:
        if remote not in scope.target_topics:
            yield Skipped(f"topic {remote}", GONE if topic in copied else "it does not exist")


def _readable(pairs: Mapping[str, str], here: Mapping[str, Entries], there: Mapping[str, Entries]) -> dict[str, tuple[Entries, Entries]]:
    """The configs of both topics, by remote topic, where both could be read. `pairs`: source topics by remote topic."""
    return {remote: (here[topic], there[remote]) for remote, topic in pairs.items() if topic in here and remote in there}


def _plans(flow: Flow, target: ClusterAdmin, both: Mapping[str, tuple[Entries, Entries]]) -> dict[str, ConfigPlan]:
    asks = any(depends_on_brokers(here, there) for here, there in both.values())
    rules = ConfigRules(flow.config_property_filter, broker_defaults(target) if asks else BrokerDefaults())
    return {topic: plan_configs(here, there, rules) for topic, (here, there) in sorted(both.items())}


def _apply(plans: Mapping[str, ConfigPlan], target: ConfigAdmin) -> ConfigErrors:
    problems = target.alter_topic_configs({topic: _entries(*plan.alterations) for topic, plan in plans.items() if plan.alterations})
    refusals = {(topic, entry.name): problem for topic, problem in problems.items() for entry in plans[topic].alterations}
    again = {topic for topic, problem in problems.items() if isinstance(problem, ChangeRefused) and len(plans[topic].alterations) > 1}
    for entries in zip_longest(*([(topic, entry) for entry in plans[topic].alterations] for topic in sorted(again))):
        alone = dict(found for found in entries if found is not None)
        answers = target.alter_topic_configs({topic: _entries(entry) for topic, entry in alone.items()})
        for topic, entry in alone.items():
            del refusals[topic, entry.name]
            if topic in answers:
                refusals[topic, entry.name] = answers[topic]
    return refusals


def _entries(*alterations: Alteration) -> dict[str, str | None]:
    return {entry.name: entry.value for entry in alterations}


def _change(topic: str, entry: Alteration) -> Change:
    return Change(f"topic {topic}", "delete" if entry.value is None else "set", entry.detail, entry.reason)

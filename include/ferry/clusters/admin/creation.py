"""Creates topics. If the cluster refuses some of their configs, Ferry leaves those out, and names them.

A cluster refuses a topic as a whole, by a policy (KIP-108), or because it does not know or does not allow a config. So Ferry first asks for
the topic with everything. If the cluster refuses it, Ferry tries each optional entry alone, without creating anything, and then creates the
topic with those that the cluster takes. If the cluster refuses the topic also without all of them, Ferry does not create it.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from ferry.clusters.admin.cluster_admin import ClusterAdmin
from ferry.clusters.admin.describe import WantedTopic
from ferry.errors import ChangeRefused, FerryError


class Creation(NamedTuple):
    """`problems`: why topics were not created, by name. `left_out`: the cluster's reasons, by topic and config."""

    problems: dict[str, FerryError]
    left_out: dict[str, dict[str, str]]


def create_topics(cluster: ClusterAdmin, wanted: Iterable[WantedTopic], *, dry_run: bool = False) -> Creation:
    """Create many topics. A topic that exists already is no error. `dry_run`: creates nothing, and returns what creating would give."""
    topics = {one.name: one for one in wanted}
    problems = cluster.create_topics(map(_whole, topics.values()), dry_run=dry_run)
    refused = [topics[name] for name, problem in problems.items() if isinstance(problem, ChangeRefused) and topics[name].optional]
    if not refused:
        return Creation(problems, {})
    in_vain = cluster.create_topics(map(_bare, refused), dry_run=True)
    left = [one for one in refused if one.name not in in_vain]
    left_out = _refused_alone(cluster, left)
    again = _create_reduced(cluster, left, left_out, dry_run=dry_run)
    problems = {name: problem for name, problem in problems.items() if name not in left_out} | in_vain | again
    return Creation(problems, {name: reasons for name, reasons in left_out.items() if reasons and name not in problems})


def _refused_alone(cluster: ClusterAdmin, topics: Iterable[WantedTopic]) -> dict[str, dict[str, str]]:
    """By topic, which of its optional entries the cluster refuses, and why. Creates nothing."""
    left_out: dict[str, dict[str, str]] = {one.name: {} for one in topics}
    for together in zip_longest(*([(one, key) for key in sorted(one.optional)] for one in topics)):  # one entry of each topic at a time
        tried = {one.name: (one, key) for one, key in filter(None, together)}
        answers = cluster.create_topics((_with(one, key) for one, key in tried.values()), dry_run=True)
        for name, problem in answers.items():
            if isinstance(problem, ChangeRefused):
                left_out[name][tried[name][1]] = str(problem)
    return left_out


def _create_reduced(
    cluster: ClusterAdmin, topics: Collection[WantedTopic], left_out: dict[str, dict[str, str]], *, dry_run: bool
) -> dict[str, FerryError]:
    """Create the topics without the entries that are `left_out`. Returns why topics were not created, by name.

    A topic gets none of its entries if the cluster takes each of them alone, but not all together: then all of them are in `left_out`.
    """
    reduced = [replace(one, optional={key: one.optional[key] for key in one.optional.keys() - left_out[one.name].keys()}) for one in topics]
    problems = cluster.create_topics(map(_whole, reduced), dry_run=dry_run)
    refused = {name: str(problem) for name, problem in problems.items() if isinstance(problem, ChangeRefused)}
    bare = [one for one in topics if one.name in refused]
    left_out |= {one.name: dict.fromkeys(one.optional, refused[one.name]) for one in bare}
    others = {name: problem for name, problem in problems.items() if name not in refused}
    return others | (cluster.create_topics(map(_bare, bare), dry_run=dry_run) if bare else {})


def _whole(one: WantedTopic) -> WantedTopic:
    return replace(one, config={**one.config, **one.optional}, optional={})


def _bare(one: WantedTopic) -> WantedTopic:
    return replace(one, optional={})


def _with(one: WantedTopic, key: str) -> WantedTopic:
    return replace(one, config={**one.config, key: one.optional[key]}, optional={})

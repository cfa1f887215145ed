"""Flows with different features, all between the same two aliases, and the rights that each needs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ferry.config import Flow, load_config
from ferry.permissions.required import required_rights
from ferry.permissions.rights import Operation, Right

TOPIC, GROUP = "orders-eu", "billing-eu"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
NO_WAY_BACK = ("B->A.emit.heartbeats.enabled = false",)
VARIANTS = {
    # Every feature, names by prefix, and all that is written to the source but offset syncs.
    "everything": (
        "A->B.topics = orders-.*",
        "A->B.groups = billing-.*",
        "sync.group.offsets.enabled = true",
        "B->A.emit.heartbeats.enabled = true",
        "ferry.publish.source.group = ferry-lag",
    ),
    # Names one by one, at-least-once, and what the other variant does otherwise.
    "one by one": (
        f"A->B.topics = {TOPIC}",
        f"A->B.groups = {GROUP}",
        "transaction.producer = false",
        "offset-syncs.topic.location = source",
        "ferry.sync.acls.report.only = true",
        "sync.topic.configs.enabled = false",
        "heartbeats.replication.enabled = false",
        *NO_WAY_BACK,
    ),
    "same names": (
        "A->B.topics = orders-.*",
        "replication.policy.class = IdentityReplicationPolicy",
        "sync.topic.acls.enabled = false",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "emit.offset-syncs.enabled = false",
        "heartbeats.replication.enabled = false",
        *NO_WAY_BACK,
    ),
    # The copy alone, of everything.
    "all topics": (
        "A->B.topics = .*",
        "sync.topic.acls.enabled = false",
        "sync.topic.configs.enabled = false",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "emit.offset-syncs.enabled = false",
        *NO_WAY_BACK,
    ),
}
# Beside every feature of theirs there, so many more rights say nothing new.
LONG = frozenset({"same names", "all topics", "one by one"})


def lines(variant: str, source: str, target: str, logins: dict[str, tuple[str, str]]) -> list[str]:
    """A config file; `logins` are user and password by alias."""
    start = [
        "clusters = A, B",
        f"A.bootstrap.servers = {source}",
        f"B.bootstrap.servers = {target}",
        "A->B.enabled = true",
        "replication.factor = 1",
        "ferry.internal.topics.replication.factor = 1",
        "ferry.lanes = 2",
        "ferry.ledger.partitions = 2",
    ]
    for alias, (user, password) in logins.items():
        start += [f"{alias}.security.protocol = SASL_PLAINTEXT", f"{alias}.sasl.mechanism = PLAIN"]
        start += [f'{alias}.sasl.jaas.config = {MODULE} required username="{user}" password="{password}";']
    return [*start, *VARIANTS[variant]]


def rights_of(variant: str) -> tuple[tuple[str, Right], ...]:
    """Side and right of a variant, those to create something last: they are tried where nothing is there yet."""
    needed = required_rights(_flow(variant))
    found = [*(("source", right) for right in needed.source), *(("target", right) for right in needed.target)]
    return tuple(sorted(found, key=lambda entry: entry[1].operation is Operation.CREATE))


def _flow(variant: str) -> Flow:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "mm2.properties"
        path.write_text("\n".join(lines(variant, "a:1", "b:1", {})) + "\n", encoding="latin-1")
        return load_config(path).flows[0]

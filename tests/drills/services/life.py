"""What a flow does in its life before a played service, by the real command, judged by librdkafka on the brokers themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from tests.drills.matrix import source_data
from tests.drills.matrix.pair import LINES, Pair
from tests.drills.matrix.source_data import CODECS, COMPACTED, PARTITIONS
from tests.drills.matrix.test_matrix import configs_of, equal, followed, moved
from tests.drills.services.playing import TOPIC_CONFIGS, Stage
from tools.kafka import compare_topics, read_all

from ferry.clusters.admin.services import ManagedService
from ferry.config import load_config
from ferry.ledger.topics import own_topics

# Replicas are those of the settings; the others are as in the matrix.
OTHER_LINES = tuple(line for line in LINES if "replication.factor" not in line)
SECONDS = 30.0
# What verify says of records that a killed run has written without transactions.
REPEATED = "these records were copied once more"


def lines_for(service: ManagedService) -> tuple[str, ...]:
    """The settings that the service needs, as `ferry doctor` names them, and -1 for every number of replicas."""
    factors = {line.split(" = ")[0]: "-1" for line in LINES if "replication.factor" in line}
    settings = {setting.key: setting.values[0] for setting in service.settings}
    clients = {f"B.producer.{key}": settings.pop(key) for key in list(settings) if key == "max.request.size"}
    return (*OTHER_LINES, *(f"{key} = {value}" for key, value in {**factors, **settings, **clients}.items()))


def pair_for(stage: Stage, service: ManagedService, directory: Path, lines: Iterable[str], suffix: str = "") -> Pair:
    """A flow of its own between both clusters, with records of every codec at the source."""
    name = "".join(letter for letter in service.name.lower() if letter.isalnum()) + suffix
    pair = Pair(name, stage.clusters, directory, addresses=stage.addresses, lines=tuple(lines))
    source_data.create(pair.source, pair.name)
    source_data.fill(pair.source, pair.name, large=True)
    return pair


def create_beforehand(pair: Pair) -> None:
    """As an administrator does with the tools of a service that does not set configs through Kafka."""
    flow = load_config(pair.config).flows[0]
    alias, policy, (_, again) = flow.source.alias, flow.policy, pair.again()
    mm2 = {policy.heartbeats_topic(), policy.checkpoints_topic(alias), policy.offset_syncs_topic(alias)}
    compacted = {pair.topics()[f"{pair.name}.{COMPACTED}"], flow.ledger_topic, flow.state_topic, *mm2}
    widths = dict.fromkeys({again, *mm2, *own_topics(flow)}, 1) | dict.fromkeys(pair.topics().values(), PARTITIONS)
    widths[flow.ledger_topic] = flow.ledger_partitions
    wanted = [NewTopic(name, width, 1, config={"cleanup.policy": "compact"} if name in compacted else {}) for name, width in widths.items()]
    admin = AdminClient(pair.target.client_settings())
    there = admin.list_topics(timeout=SECONDS).topics
    for future in admin.create_topics([topic for topic in wanted if topic.topic not in there]).values():
        future.result(SECONDS)


def lived(pair: Pair, service: ManagedService) -> None:
    """Create, copy, kill, go on, groups, configs, verify: everything is exact in the end."""
    plan = pair.ferry("plan")
    assert plan["failed"] == [], plan
    assert pair.run_and_kill() > 0
    report = pair.ferry("run", "--master", "inline")
    assert (report["failed"], report["losses"]) == ([], [])
    exact(pair, service)
    source_data.fill(pair.source, pair.name)
    groups = followed(pair)
    pair.ferry("run", "--master", "inline")
    exact(pair, service)
    moved(pair, groups)
    if service.takes_configs:
        remote, known = pair.topics()[f"{pair.name}.{CODECS[0]}"], TOPIC_CONFIGS.get(service.name)
        kept = {name: value for name, value in source_data.CONFIGS.items() if known is None or name in known}
        assert configs_of(pair.target, remote) >= kept.items()
    assert configs_of(pair.target, pair.topics()[f"{pair.name}.{COMPACTED}"]) >= {"cleanup.policy": "compact"}.items()
    proof = pair.ferry("verify")
    twice = [entry for entry in proof["not_covered"] if REPEATED in entry["reason"]]
    assert (proof["counts"], proof["not_covered"]) == ({}, [] if service.transactions else twice), proof


def exact(pair: Pair, service: ManagedService) -> None:
    """Each record once; without transactions each at least once, and each source partition in its order."""
    if service.transactions:
        equal(pair)
        return
    for topic, remote in pair.topics().items():
        for here, there in zip(read_all(pair.source.bootstrap, topic), read_all(pair.target.bootstrap, remote), strict=True):
            copied, wanted = ([(record.key, record.value, record.timestamp) for record in log] for log in (there, here))
            following = iter(copied)
            assert all(any(record == one for one in following) for record in wanted), f"{topic}: a record is missing"
            assert set(copied) == set(wanted)


def refused_or_exact(pair: Pair) -> str:
    """A run ends without an error and exact; or it fails and has written nothing. What it said."""
    done = pair.done("run", "--master", "inline")
    if done.returncode:
        assert not pair.remote_names(), f"refused, and yet there is something: {done.stderr[-2000:]}"
        assert done.stderr.strip(), "it says nothing"
        return done.stderr
    report = json.loads(done.stdout)
    assert (report["failed"], report["losses"]) == ([], [])
    found = compare_topics(pair.source.bootstrap, pair.target.bootstrap, pair.topics())
    assert found.equal, found.differences[:3]
    return ""

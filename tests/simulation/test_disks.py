"""A broker that loses one of its disks: a simulated one answers as a real one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.simulation.asker import Asker
from tests.simulation.asks import Ask, DeleteRecords, EpochEnd, Fetch, ListOffsets, Memory, Produce, Producers
from tests.simulation.asks_of_admins import CreateTopics, Metadata
from tests.simulation.codes import Code, codes_of
from tests.simulation.comparing import Names, paths, plain
from tests.simulation.real_broker import RealBroker
from tests.simulation.releases import Release
from tools.kafka import SandboxCluster

from ferry.config import Flow

TOPICS = ("one", "two", "three", "four")
HOUR = 3_600_000  # ms
# A new segment makes the broker notice.
NOTICED = 0


def _before() -> list[Ask]:
    created: list[Ask] = [CreateTopics(name, config=(("segment.ms", str(HOUR)),)) for name in TOPICS]
    return [*created, *(Produce(name, ages=(9 * HOUR,)) for name in TOPICS)]


def _asks(lost: str, kept: str) -> Sequence[Ask]:
    return [
        Produce(lost, ages=(NOTICED,)),
        Metadata((lost,)),
        Produce(lost, ages=(NOTICED,)),
        Fetch(lost),
        ListOffsets(lost),
        ListOffsets(lost, at=-2),
        EpochEnd(lost),
        Producers(lost),
        DeleteRecords(lost),
        Produce(kept, ages=(NOTICED,)),
        Fetch(kept),
    ]


@pytest.mark.unit
@pytest.mark.parametrize(("release", "in_sync"), [((3, 9), [1]), ((4, 3), [])])
def test_the_only_replica_on_a_disk_that_is_lost(release: Release, in_sync: list[int]) -> None:
    ask = Asker(release=release)
    for one in _before():
        ask(one)
    ask.cluster.fail_disk(1, ask.cluster.topic("one").partitions[0])
    assert codes_of(ask(Produce("one"))) == {Code.KAFKA_STORAGE_ERROR}
    assert codes_of(ask(Produce("two"))) == {Code.NONE}
    ask.cluster.settle()
    told = ask(Metadata(("one",))).topics[0].partitions[0]
    assert (told.leader_id, told.isr_nodes, told.offline_replicas) == (-1, in_sync, [1])


@pytest.mark.brokers
@pytest.mark.long
@pytest.mark.parametrize(("name", "release"), [("2.8.2", (2, 8)), ("3.9.1", (3, 9)), ("4.3.1", (4, 3)), ("4.4.0", (4, 4))])
def test_a_real_broker_answers_the_same(
    name: str, release: Release, tmp_path: Path, cluster_factory: Callable[..., SandboxCluster], flow_factory: Callable[..., Flow]
) -> None:
    disks = tmp_path / "first", tmp_path / "second"
    properties = {"log.dirs": ",".join(map(str, disks))}
    properties |= {"metadata.log.dir": str(disks[0])} if release >= (3, 3) else {}
    cluster = cluster_factory(properties, version=name)
    real = RealBroker(flow_factory("A->B.topics = x", source=SimpleNamespace(bootstrap="127.0.0.1:1"), target=cluster))
    memory, ask = Memory(int(time.time() * 1_000)), Asker(release=release, transaction_version=2 if release >= (4, 0) else 0)
    for one in _before():
        ask(one)
        real.asked(one, memory)
    kept, lost = (next(topic for topic in TOPICS if (disk / f"{topic}-0").exists()) for disk in disks)
    shutil.rmtree(disks[1])
    disks[1].touch()
    ask.cluster.fail_disk(1, *(ask.cluster.topic(topic).partitions[0] for topic in TOPICS if not (disks[0] / f"{topic}-0").exists()))
    differ, names, simulated = [], Names(memory), Names(ask.memory)
    for one in _asks(lost, kept):
        wanted = plain(ask(one), simulated)
        ask.cluster.settle()
        told = real.ask(one, one.request(memory), lambda answer: plain(answer, names) == wanted)  # noqa: B023
        differ += [f"{one}: {path}" for path in paths(wanted, plain(told, names))]
    real.close()
    assert not differ, "\n".join(differ)

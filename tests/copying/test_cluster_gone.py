"""All brokers of a side are gone in the middle of a run or a verify: one lane or range waits for them, and nobody waits again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conftest import Lab
from tests.opened import verify
from tools.kafka import SandboxCluster, compare_topics

from ferry.clusters.admin import cluster_admin as admin
from ferry.clusters.groups import coordination
from ferry.clusters.logs import internal_producer
from ferry.clusters.net import outage
from ferry.copying import driver
from ferry.copying.lane import Lane
from ferry.copying.lane_messages import LaneResult
from ferry.errors import ClusterUnreachable, ExitCode
from ferry.verify import log_reader
from ferry.verify.comparison import VerifyRange
from ferry.verify.range_runner import _RangeVerifier, verify_inline
from ferry.verify.request import VerifyRequest

pytestmark = [pytest.mark.brokers]

LANES = 5
RECORDS = 500
# What the lane that meets the outage waits, instead of 75 s; and every other patience: a run that waited for one of them would not end.
SHORT, FOREVER = 3.0, 100_000.0


@pytest.mark.long
@pytest.mark.parametrize("side", ["source", "target"])
def test_nobody_waits_again_for_what_one_has_waited_for(
    side: str, lab: Lab, cluster_factory: Callable[..., SandboxCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    struck = cluster_factory()
    clusters = {"source": lab.source, "target": lab.target} | {side: struck}
    topic = lab.topic(clusters["source"], partitions=LANES)
    flow = lab.flow(f"A->B.topics = {topic}", f"A->B.ferry.lanes = {LANES}", **clusters)
    lab.produce(clusters["source"], topic, [(number % LANES, None, b"%d" % number) for number in range(RECORDS)])
    for module, name in ((outage, "PATIENCE_SECONDS"), (admin, "FIRST_ATTEMPT_SECONDS"), (admin, "ANY_BROKER_SECONDS")):
        monkeypatch.setattr(module, name, SHORT)
    for module, name in (
        (coordination, "COORDINATION_SECONDS"),
        (driver, "COORDINATION_SECONDS"),
        (internal_producer, "WRITE_SECONDS"),
        (log_reader, "PATIENCE_SECONDS"),
    ):
        monkeypatch.setattr(module, name, FOREVER)
    begun: list[int] = []
    run, copy = Lane.run, Lane._copy

    async def noted(lane: Lane) -> LaneResult:
        begun.append(lane._task.lane)
        return await run(lane)

    async def gone_under_the_first(lane: Lane) -> None:
        if len(begun) == 1:
            struck.kill()
        await copy(lane)

    monkeypatch.setattr(Lane, "run", noted)
    monkeypatch.setattr(Lane, "_copy", gone_under_the_first)
    with pytest.raises(ClusterUnreachable) as failed:
        lab.run(flow)
    monkeypatch.setattr(Lane, "_copy", copy)
    assert failed.value.exit_code is ExitCode.UNREACHABLE
    assert f"cluster {getattr(flow, side).alias} ({struck.bootstrap}): no broker has answered" in str(failed.value)
    assert len(begun) == 1
    struck.run()
    assert lab.run(flow).exit_code is ExitCode.DONE
    found = compare_topics(clusters["source"].bootstrap, clusters["target"].bootstrap, {topic: f"{flow.source.alias}.{topic}"})
    assert found.equal, found.differences
    assert found.records == RECORDS

    compare = _RangeVerifier._compare

    async def gone_under_every_range(verifier: _RangeVerifier, wanted: VerifyRange) -> object:
        struck.kill()
        return await compare(verifier, wanted)

    monkeypatch.setattr(_RangeVerifier, "_compare", gone_under_every_range)
    verified = verify(flow, VerifyRequest(flow.name, "gone"), verify_inline, lambda _: None)
    assert len(verified.failed) == LANES
    assert {failure.error for failure in verified.failed} == {"ClusterUnreachable"}
    assert verified.exit_code is ExitCode.UNREACHABLE

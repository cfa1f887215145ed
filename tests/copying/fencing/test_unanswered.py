"""A proof that a transactional id is still held, where the cluster does not answer: an error of Ferry's own says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.clusters.connections import ClusterConnection, RequestLost, RequestNotSent
from ferry.clusters.coordination import ProducerIdentity
from ferry.config import load_config
from ferry.copying.fencing import FencedWriter
from ferry.errors import ClusterUnreachable

pytestmark = pytest.mark.unit

CONFIG = """
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A.security.protocol = PLAINTEXT
B.security.protocol = PLAINTEXT
A->B.enabled = true
A->B.topics = t
"""


@pytest.mark.parametrize("unanswered", [RequestLost, RequestNotSent])
def test_a_proof_that_nobody_answers_is_a_cluster_that_is_not_reached(
    unanswered: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The very first request of a proof asks which protocol of transactions the cluster has."""

    async def refuse(*_: object) -> None:
        raise unanswered("cluster B: connection reset")

    monkeypatch.setattr(ClusterConnection, "send", refuse)
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    writer = FencedWriter(load_config(config).flow("A->B"), "g", "ferry-A->B-run", ["state"])
    writer.identity = ProducerIdentity(1, 0)
    try:
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not prove that it is held: cluster B: connection reset"):
            writer.confirm()
        with pytest.raises(ClusterUnreachable, match="ferry-A->B-run could not write: cluster B: connection reset"):
            writer.write({("state", 0): [(b"k", b"v")]})
    finally:
        writer.__exit__()

"""Whether a run that should follow goes on."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.opened import not_opened

from ferry.clusters.groups.coordination import ProducerIdentity
from ferry.clusters.open_cluster import OpenCluster
from ferry.config import load_config
from ferry.copying import run_liveness
from ferry.copying.run_liveness import RunProof

CONFIG = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:2\nA->B.enabled = true\n"
pytestmark = pytest.mark.unit
BEFORE = ProducerIdentity(1, 0)


@pytest.mark.parametrize(
    ("told", "proven", "seconds"),
    [
        ([BEFORE] * 5, False, 3.0),
        ([BEFORE, BEFORE, ProducerIdentity(1, 1)], True, 1.0),
        ([BEFORE, ProducerIdentity(2, 0)], True, 0.0),
        ([None], True, 0.0),
        ([BEFORE, None], True, 0.0),
    ],
)
def test_who_proves_the_run_id_lives_and_so_does_who_is_not_known(
    told: list[ProducerIdentity | None], proven: bool, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "mm2.properties"
    config.write_text(CONFIG)
    slept: list[float] = []
    monkeypatch.setattr(OpenCluster, "ask", lambda *_, **__: told.pop(0))
    monkeypatch.setattr(run_liveness, "clock", SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept)))
    assert RunProof(not_opened(load_config(config).flow("A->B"))).comes(2.5) == proven
    assert (told, sum(slept)) == ([], seconds)

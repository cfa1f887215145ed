"""The sync with a real Apicurio Registry: as a target it is named before a record is copied, as a source it is read whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.schemas.apicurio import apicurio
from tests.schemas.double.server import RegistryDouble
from tests.schemas.registries import IDENTITY, Pair, flow_between
from tests.waiting import NEVER_SECONDS

from ferry.config import Flow
from ferry.doctor.registries import registry_findings
from ferry.errors import IdsNotKept
from ferry.syncs import schemas

pytestmark = [pytest.mark.java, pytest.mark.long]

A, B, C = (json.dumps({"type": "record", "name": name, "fields": []}, separators=(",", ":")) for name in "ABC")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apicurio(tmp_path_factory.mktemp("apicurio") / "log") as url:
        yield url


def between(flow: Flow, double: RegistryDouble, monkeypatch: pytest.MonkeyPatch) -> Pair:
    made = Pair(flow, double, double)
    monkeypatch.setattr(schemas, "_append", made.keep)
    return made


def test_apicurio_as_a_target_keeps_no_ids(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RegistryDouble() as source:
        source.registry.set_mode("kept", "IMPORT", True)
        source.seed("kept", A, id=777, version=3)
        made = between(flow_between(tmp_path, source.url, url), source, monkeypatch)
        with pytest.raises(IdsNotKept, match=r"subject kept version 3 with id 777 was registered, and it has id \d+"):
            made.sync()
        assert httpx.get(f"{url}/subjects?deleted=true", timeout=NEVER_SECONDS).json() == []
        assert made.state.imports == {}


def test_apicurio_as_a_source_is_read_subject_by_subject(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with httpx.Client(base_url=url, headers=headers, timeout=NEVER_SECONDS) as client:
        for subject, body in (
            ("orders-value", {"schema": A}),
            ("orders-value", {"schema": B}),
            ("uses", {"schema": C, "references": [{"name": "A", "subject": "orders-value", "version": 1}]}),
        ):
            client.post(f"/subjects/{subject}/versions", json=body).raise_for_status()
    with RegistryDouble() as target:
        flow = flow_between(tmp_path, url, target.url, IDENTITY)
        made = between(flow, target, monkeypatch)
        outcome = made.sync()
        assert outcome.failed == ()
        assert sorted(made.content(target)) == [("orders-value", 1), ("orders-value", 2), ("uses", 1)]
        assert "compatibility levels and modes are not copied" in " ".join(outcome.notices)
        assert made.sync().changes == ()
        assert any("as Apicurio does" in finding.found for finding in registry_findings(flow))

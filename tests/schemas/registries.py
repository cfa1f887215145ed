"""A flow between two doubles of a registry, with the state topic in memory: what the sync of schemas does, without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from tests.schemas.double.server import RegistryDouble

from ferry.config import Flow, load_config
from ferry.ledger.open_flow import OpenFlow
from ferry.ledger.state import FlowState, fold_state
from ferry.ledger.sync_outcome import SyncOutcome
from ferry.syncs import schemas

IDENTITY = "replication.policy.class = IdentityReplicationPolicy"


def flow_between(path: Path, source: str, target: str, *lines: str) -> Flow:
    """The flow A->B of a file with these two registries."""
    text = ["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", "A->B.enabled = true"]
    text += [f"A.schema.registry.url = {source}", f"B.schema.registry.url = {target}", *lines]
    file = path / "mm2.properties"
    file.write_text("\n".join(text), encoding="latin-1")
    return load_config(file).flows[0]


@dataclass
class Pair:
    """`records`: the content of the state topic; `writes`: how often it was written."""

    flow: Flow
    source: RegistryDouble
    target: RegistryDouble
    records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    writes: int = 0

    @property
    def state(self) -> FlowState:
        return fold_state(self.records)

    def keep(self, _: OpenFlow, records: Any) -> None:
        self.records += records
        self.writes += 1

    def sync(self, *, dry_run: bool = False) -> SyncOutcome:
        return schemas.sync_schemas(cast(OpenFlow, self), dry_run=dry_run)

    def content(self, double: RegistryDouble) -> dict[tuple[str, int], tuple[int, bool, str]]:
        """Id, whether it is deleted, and text of each version."""
        found = double.registry.schemas(":*:", True, False)
        return {(one.subject, one.number): (one.id, one.deleted, one.content.text) for one in found}


@contextmanager
def pair(path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str, **target: Any) -> Iterator[Pair]:
    with RegistryDouble() as source, RegistryDouble(**target) as there:
        made = Pair(flow_between(path, source.url, there.url, *lines), source, there)
        monkeypatch.setattr(schemas, "_append", made.keep)
        yield made

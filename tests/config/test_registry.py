"""The registry of properties."""

from __future__ import annotations

import pytest

from ferry.config.registry import CLIENT_PROPERTIES, FILE_PROPERTIES, FLOW_PROPERTIES, WORKER_PROPERTIES
from ferry.config.registry.clients import CLIENTS
from ferry.config.registry.ferry import FERRY
from ferry.config.registry.flows import FLOWS
from ferry.config.registry.property import Effect, Property
from ferry.config.registry.schemas import SCHEMAS
from ferry.config.registry.workers import FILE, WORKERS

pytestmark = pytest.mark.unit

EVERY = (*FERRY, *FILE, *FLOWS, *CLIENTS, *WORKERS)


@pytest.mark.parametrize("known", EVERY, ids=lambda known: known.name)
def test_rows_are_complete(known: Property) -> None:
    assert known.meaning
    assert bool(known.why) == (known.effect is not Effect.HONOURED)
    if known.default is not None:
        known.kind.parse(known.default)


def test_no_name_stands_twice_in_a_table() -> None:
    assert len(CLIENT_PROPERTIES) == len(CLIENTS)
    assert len(FILE_PROPERTIES) == len(FILE)
    assert len(WORKER_PROPERTIES) == len(WORKERS)
    assert len(FLOW_PROPERTIES) == len(FLOWS) + len(SCHEMAS) + len(FERRY) - 1  # one of Ferry's is a cluster's

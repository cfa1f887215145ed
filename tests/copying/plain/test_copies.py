"""A flow that copies without transactions, to a target that refuses every request of one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.copying.plain.conftest import Copy

from ferry.config import Flow
from ferry.errors import ExitCode
from ferry.ledger.run_report import RunReport

pytestmark = pytest.mark.brokers


def test_what_nobody_ends_is_copied_once(flow: Flow, copy: Copy, fill: Callable[[int], None], run_flow: Callable[..., RunReport]) -> None:
    for count in (3_000, 10, 0):
        fill(count)
        report = run_flow(flow)
        assert (report.exit_code, report.records, report.repeated) == (ExitCode.DONE, count, ())
    places = copy.places(copy.commit_groups(random.Random(1)))
    assert all(place.exact for place in places)
    copy.assert_exact(places)
    assert copy.assert_bounded() == 0
    copy.assert_verified()

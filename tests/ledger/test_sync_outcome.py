"""What the failures of a sync come to: exit code, and whether to try again."""

from __future__ import annotations

import pytest

from ferry.errors import ExitCode, PartitionsFailed, RetryRule
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome

pytestmark = pytest.mark.unit

AWAY = SyncFailure("sync configs", "ClusterUnreachable", "cluster B: away")
DENIED = SyncFailure("topic A.t", "NotAuthorized", "grant Alter")


@pytest.mark.parametrize(
    ("failed", "changes", "code"),
    [
        ((), (), ExitCode.DONE),
        ((AWAY,), (), ExitCode.UNREACHABLE),
        ((DENIED,), (), ExitCode.PARTLY_FAILED),
        ((AWAY,), (Change("topic A.t", "set"),), ExitCode.PARTLY_FAILED),
    ],
)
def test_exit_codes(failed: tuple[SyncFailure, ...], changes: tuple[Change, ...], code: ExitCode) -> None:
    assert SyncOutcome("configs", changes=changes, failed=failed).exit_code == code


@pytest.mark.parametrize(("failed", "rule"), [((AWAY, DENIED), RetryRule.RETRY), ((DENIED,), RetryRule.FAIL)])
def test_failures_that_a_retry_cannot_help_are_not_tried_again(failed: tuple[SyncFailure, ...], rule: RetryRule) -> None:
    with pytest.raises(PartitionsFailed, match=f"{len(failed)} failed: ") as raised:
        SyncOutcome("configs", failed=failed).raise_for_failures()
    assert raised.value.retry is rule


def test_nothing_failed() -> None:
    SyncOutcome("configs").raise_for_failures()

"""What the failures of a sync come to: exit code, and whether to try again."""

from __future__ import annotations

import pytest

from ferry.errors import ClusterUnreachable, ExitCode, PartitionsFailed, RetryRule
from ferry.ledger.sync_outcome import Change, SyncFailure, SyncOutcome, WholeSyncFailure

pytestmark = pytest.mark.unit

AWAY = WholeSyncFailure.of("sync configs", ClusterUnreachable("cluster B: away"))
ALIKE = SyncFailure("sync configs", "ClusterUnreachable", "the same words, about one thing")
DENIED = SyncFailure("topic A.t", "NotAuthorized", "grant Alter")


@pytest.mark.parametrize(
    ("failed", "changes", "code"),
    [
        ((), (), ExitCode.DONE),
        ((AWAY,), (), ExitCode.UNREACHABLE),
        ((DENIED,), (), ExitCode.PARTLY_FAILED),
        ((ALIKE,), (), ExitCode.PARTLY_FAILED),
        ((AWAY, DENIED), (), ExitCode.PARTLY_FAILED),
        ((AWAY,), (Change("topic A.t", "set"),), ExitCode.PARTLY_FAILED),
    ],
)
def test_exit_codes(failed: tuple[SyncFailure, ...], changes: tuple[Change, ...], code: ExitCode) -> None:
    assert SyncOutcome(changes, failed=failed).exit_code == code


@pytest.mark.parametrize(("failed", "rule"), [((AWAY, DENIED), RetryRule.RETRY), ((DENIED,), RetryRule.FAIL)])
def test_failures_that_a_retry_cannot_help_are_not_tried_again(failed: tuple[SyncFailure, ...], rule: RetryRule) -> None:
    with pytest.raises(PartitionsFailed, match=f"{len(failed)} failed: ") as raised:
        SyncOutcome(sync="configs", failed=failed).raise_for_failures()
    assert raised.value.retry is rule


def test_nothing_failed() -> None:
    SyncOutcome().raise_for_failures()


def test_the_document_of_a_sync_that_failed_as_a_whole() -> None:
    document = SyncOutcome(sync="configs", failed=(AWAY,)).document()
    assert next(iter(document.items())) == ("sync", "configs")
    assert document["failed"] == [{"what": "sync configs", "error": "ClusterUnreachable", "problem": "cluster B: away"}]

"""How long an administration asks again: a cluster that has answered may be restarting, another one is unreachable at once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.clusters import admin as module
from ferry.clusters.admin import ATTEMPT_PAUSE_SECONDS, ClusterAdmin
from ferry.clusters.connections import RequestLost
from ferry.clusters.unreachable import PATIENCE_SECONDS
from ferry.errors import AuthenticationFailed, ClusterUnreachable

pytestmark = pytest.mark.unit

GONE = ClusterUnreachable("cluster A does not answer")
ANSWER = "the cluster's id"
ATTEMPTS = round(PATIENCE_SECONDS / ATTEMPT_PAUSE_SECONDS)


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ClusterAdmin, list[Any]]]:
    """An administration, and the answers that it gets: what is an error is raised."""
    answers: list[Any] = []
    clock = SimpleNamespace(now=0.0)

    def sleep(seconds: float) -> None:
        clock.now += seconds

    def answered(*_: object, **__: object) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))
    monkeypatch.setattr(module, "ask_cluster", answered)
    with ClusterAdmin(SimpleNamespace(alias="A", bootstrap="a:9092")) as made:  # type: ignore[arg-type] - it only names the cluster
        yield made, answers


def test_a_cluster_that_never_answered_is_unreachable_at_once(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [GONE, ANSWER]
    with pytest.raises(ClusterUnreachable, match="cluster A does not answer"):
        made.cluster_id()
    assert answers == [ANSWER]


@pytest.mark.parametrize("before", [[ANSWER], [RequestLost("reset"), ANSWER]], ids=["an answer", "its brokers were found"])
@pytest.mark.parametrize("problem", [GONE, RequestLost("reset")])
def test_a_cluster_that_has_answered_may_be_restarting(
    before: list[Any], problem: Exception, admin: tuple[ClusterAdmin, list[Any]]
) -> None:
    made, answers = admin
    answers += [*before, *[problem] * ATTEMPTS, ANSWER]
    assert [made.cluster_id(), made.cluster_id()] == [ANSWER, ANSWER]
    answers += [problem] * (ATTEMPTS + 2)
    with pytest.raises(ClusterUnreachable):
        made.cluster_id()
    assert answers == []


def test_a_refused_login_is_final(admin: tuple[ClusterAdmin, list[Any]]) -> None:
    made, answers = admin
    answers += [ANSWER, AuthenticationFailed("no login"), ANSWER]
    made.cluster_id()
    with pytest.raises(AuthenticationFailed):
        made.cluster_id()
    assert answers == [ANSWER]
